/* SPDX-License-Identifier: Apache-2.0
 *
 * units.c: chooses the unit after rounding, so that 999.96 us reads 1.000 ms. NaN, the result of arithmetic on a
 * missing value, reads "n/a".
 */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const si_prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
static const char *const time_units[] = {"ns", "us", "ms", "s"};

static char *not_a_number(char *out, double value)
{
	snprintf(out, UNITS_BYTES, "%s", isnan(value) ? "n/a" : value < 0 ? "-inf" : "inf");
	return out;
}

/* Returns the number of decimals that gives `digits` significant digits for a number below about 1000. */
static int decimals_for(double value, int digits)
{
	int before = fabs(value) < 10 ? 1 : fabs(value) < 100 ? 2 : 3;

	return digits > before ? digits - before : 0;
}

static double rounded(double value, int decimals)
{
	double scale = pow(10, decimals);

	return round(value * scale) / scale;
}

/* Returns the value as displayed, with its decimals. 9.9996 has one decimal fewer, because it reads 10.00. */
static double settle(double value, int digits, int *decimals)
{
	*decimals = decimals_for(value, digits);
	value = rounded(value, *decimals);
	*decimals = decimals_for(value, digits);
	return value;
}

/* Divides by base until the rounded value is below it, at most `last` times. Returns the number of divisions. */
static int scale_down(double *value, double base, int digits, int last, int *decimals)
{
	int unit = 0;

	while (unit < last && fabs(settle(*value, digits, decimals)) >= base) {
		*value /= base;
		unit++;
	}
	*value = settle(*value, digits, decimals);
	return unit;
}

/* Writes a whole number below 10^15 in groups of three. */
static void group(char *out, double value)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRId64, (int64_t)fabs(value));
	char *to = out;

	if (value < 0)
		*to++ = '-';
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ' ';
		*to++ = digits[i];
	}
	*to = '\0';
}

/* Writes up to four significant digits without trailing zeros. A large whole number keeps all digits. */
static void plain_number(char *out, double value)
{
	if (fabs(value) >= 1e15)
		snprintf(out, UNITS_BYTES, "%.4g", value);
	else if (fabs(value) >= 999.95 || value == round(value))
		group(out, round(value));
	else if (fabs(value) >= 1e-4)
		snprintf(out, UNITS_BYTES, "%.*g", 4, value);
	else
		snprintf(out, UNITS_BYTES, "%.3g", value);
}

/* Writes a minute or more: the two largest of days, hours, minutes, seconds. */
static char *long_time(char *out, double seconds, const char *sign)
{
	double whole_seconds = round(seconds);
	double minutes = round(seconds / 60);
	double hours = round(seconds / 3600);

	if (whole_seconds < 3600)
		snprintf(out, UNITS_BYTES, "%s%.0f min %.0f s", sign, floor(whole_seconds / 60),
		         fmod(whole_seconds, 60));
	else if (minutes < 48 * 60)
		snprintf(out, UNITS_BYTES, "%s%.0f h %.0f min", sign, floor(minutes / 60), fmod(minutes, 60));
	else if (hours < 24e6)
		snprintf(out, UNITS_BYTES, "%s%.0f d %.0f h", sign, floor(hours / 24), fmod(hours, 24));
	else
		snprintf(out, UNITS_BYTES, "%s%.4g d", sign, seconds / 86400);
	return out;
}

char *units_time(char *out, double ns)
{
	double value = ns;
	int decimals;
	int unit;

	if (!isfinite(ns))
		return not_a_number(out, ns);
	unit = scale_down(&value, 1000, 4, 3, &decimals);
	if (unit == 3 && fabs(value) >= 60)
		return long_time(out, fabs(ns) / 1e9, ns < 0 ? "-" : "");
	if (unit > 0)
		snprintf(out, UNITS_BYTES, "%.*f %s", decimals, value, time_units[unit]);
	else
		snprintf(out, UNITS_BYTES, "%.4g ns", ns == 0 ? 0 : ns);
	return out;
}

char *units_bytes(char *out, double bytes)
{
	double value = bytes;
	int decimals;
	int unit;

	if (!isfinite(bytes))
		return not_a_number(out, bytes);
	unit = scale_down(&value, 1024, 3, (int)(sizeof(byte_units) / sizeof(byte_units[0])) - 1, &decimals);
	if (unit == 0)
		snprintf(out, UNITS_BYTES, "%.0f B", round(bytes) == 0 ? 0 : bytes);
	else if (fabs(value) < 1e6)
		snprintf(out, UNITS_BYTES, "%.*f %s", decimals, value, byte_units[unit]);
	else
		snprintf(out, UNITS_BYTES, "%.4g %s", value, byte_units[unit]);
	return out;
}

char *units_count(char *out, double count)
{
	if (!isfinite(count))
		return not_a_number(out, count);
	plain_number(out, count);
	return out;
}

static char *write_percent(char *out, double ratio)
{
	double percent = ratio * 100;

	if (!isfinite(ratio))
		return not_a_number(out, ratio);
	if (fabs(percent) >= 999.95) {
		plain_number(out, percent);
		strncat(out, " %", UNITS_BYTES - 1 - strlen(out));
	} else {
		snprintf(out, UNITS_BYTES, "%.1f %%", rounded(percent, 1) == 0 ? 0 : percent);
	}
	return out;
}

char *units_ratio(char *out, double ratio)
{
	if (!(ratio > 0 && ratio < 0.0005))
		return write_percent(out, ratio);
	snprintf(out, UNITS_BYTES, "<0.1 %%"); /* a small value is not zero */
	return out;
}

char *units_change(char *out, double ratio)
{
	char text[UNITS_BYTES];

	write_percent(text, ratio);
	snprintf(out, UNITS_BYTES, "%s%.*s", isfinite(ratio) && rounded(ratio * 100, 1) > 0 ? "+" : "", UNITS_BYTES - 2,
	         text);
	return out;
}

char *units_rate(char *out, double per_second, const char *what)
{
	char number[UNITS_BYTES];
	double value = per_second;
	int decimals;
	int unit = 0;

	if (!isfinite(per_second))
		return not_a_number(out, per_second);
	if (fabs(per_second) < 999950) {
		/* four significant digits: 98 304 reads 98 300 */
		double step = fabs(per_second) < 9999.5 ? 1 : fabs(per_second) < 99995 ? 10 : 100;

		plain_number(number, step > 1 ? round(per_second / step) * step : per_second);
	} else {
		unit = scale_down(&value, 1000, 3, (int)(sizeof(si_prefixes) / sizeof(si_prefixes[0])) - 1, &decimals);
		if (fabs(value) < 1e6)
			snprintf(number, sizeof(number), "%.*f", decimals, value);
		else
			snprintf(number, sizeof(number), "%.4g", value);
	}
	if (snprintf(out, UNITS_BYTES, "%s %s%s/s", number, si_prefixes[unit], what) >= UNITS_BYTES)
		snprintf(out, UNITS_BYTES, "%.12s %s.../s", number, si_prefixes[unit]);
	return out;
}
