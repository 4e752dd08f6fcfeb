/* SPDX-License-Identifier: Apache-2.0
 *
 * stepscope.hpp: scope objects for the C API. They end automatically, also on exceptions. C++17.
 *
 *     stepscope::Step step(n);
 *     {
 *         stepscope::Phase phase(STEPSCOPE_PHASE_FORWARD);
 *         stepscope::Range range("embedding");
 *         ...
 *     }
 *
 * Objects belong to the thread that creates them and must be destroyed in reverse order of creation, as local variables
 * are. A name is copied at the first use. Cost and thread rules are those of the C functions.
 */
#ifndef STEPSCOPE_HPP
#define STEPSCOPE_HPP

#include <cstdint>
#include <stepscope/stepscope.h>
#include <string>

namespace stepscope
{

class Scope
{
      protected:
	Scope() noexcept = default;
	~Scope() = default;

      public:
	Scope(const Scope &) = delete;
	Scope &operator=(const Scope &) = delete;
};

/* One optimizer step; ends with the scope. */
class Step : Scope
{
      public:
	explicit Step(std::int64_t number) noexcept
	{
		stepscope_step_begin(number);
	}
	~Step()
	{
		stepscope_step_end();
	}
	void tokens(std::uint64_t count) noexcept
	{
		stepscope_step_tokens(count);
	}
	void samples(std::uint64_t count) noexcept
	{
		stepscope_step_samples(count);
	}
};

class MicroBatch : Scope
{
      public:
	explicit MicroBatch(std::int64_t index) noexcept
	{
		stepscope_micro_batch_begin(index);
	}
	~MicroBatch()
	{
		stepscope_micro_batch_end();
	}
};

class Phase : Scope
{
      public:
	explicit Phase(enum stepscope_phase phase) noexcept
	{
		stepscope_phase_begin(phase);
	}
	~Phase()
	{
		stepscope_phase_end();
	}
};

class Range : Scope
{
      public:
	explicit Range(const char *name) noexcept
	{
		stepscope_range_push(name);
	}
	explicit Range(const std::string &name) noexcept
	{
		stepscope_range_push(name.c_str());
	}
	explicit Range(stepscope_name_t name) noexcept
	{
		stepscope_range_push_name(name);
	}
	~Range()
	{
		stepscope_range_pop();
	}
};

class Op : Scope
{
      public:
	explicit Op(const char *name) noexcept
	{
		stepscope_op_begin(name);
	}
	Op(stepscope_name_t name, const stepscope_op_info &info) noexcept
	{
		stepscope_op_begin_info(name, &info);
	}
	~Op()
	{
		stepscope_op_end();
	}
};

} // namespace stepscope

#endif
