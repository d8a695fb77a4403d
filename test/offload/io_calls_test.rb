# frozen_string_literal: true

# test: each selector

require_relative "support/offloaded"
require "tempfile"

# Ruby's own calls on a descriptor, such as file locks: other fibers run meanwhile. Where they can't be intercepted,
# that is said.
class OffloadIOCallsTest < Minitest::Test
  include Offloaded

  def test_fiber_waits_for_a_file_lock_of_another_fiber_of_its_loop
    Tempfile.create("lock") do |file|
      order = []
      in_loop do
        file.flock(File::LOCK_EX)
        waiter = Heddle.async { File.open(file.path) { |other| order << other.flock(File::LOCK_EX) } }
        until_true { Heddle::Offload.threads[:running] == 1 }
        order << :unlock
        file.flock(File::LOCK_UN)
        Heddle.timeout(LIMIT) { waiter.value }
      end

      assert_equal [:unlock, 0], order
    end
  end

  def test_fsync_is_offloaded
    Tempfile.create("synced") do |file|
      in_loop { [file.fsync, file.fdatasync] }
    end
    offloaded = Heddle::Offload.functions.select { |function| %i[fsync fdatasync].include?(function[:method]) }

    assert_equal 2, offloaded.size
    offloaded.each { |function| assert_operator function[:offloaded], :>=, 1 }
  end

  def test_exclusive_lock_of_a_file_with_unwritten_output_flushes_it
    Tempfile.create("written") do |file|
      in_loop do
        file.write("text")
        file.flock(File::LOCK_EX)
      end

      assert_equal "text", File.read(file.path)
    end
  end

  def test_time_limit_ends_the_wait_for_a_file_lock
    Tempfile.create("lock") do |file|
      file.flock(File::LOCK_EX)
      in_loop do
        other = File.open(file.path)
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.05) { other.flock(File::LOCK_EX) } }
        other.close

        assert_predicate other, :closed?
      end
    end
  end

  def test_every_function_is_found_on_this_ruby
    assert_empty Heddle::Offload.status[:missing]
  end

  MISSING = "puts Heddle::Offload.status[:missing].map { _1[:function] }.inspect, Heddle::Protection.summary"

  def test_functions_that_are_not_intercepted_are_named_with_the_reason
    output = offloading(MISSING, env: { "HEDDLE_OFFLOAD_IMPORTS" => "-rb_thread_io_blocking_call,-dlopen" })

    assert_includes output, %w[dlopen rb_thread_io_blocking_call].inspect
    assert_includes output, "off: offload of libraries that are loaded later (dlopen: excluded by HEDDLE_OFFLOAD_" \
                            "IMPORTS), offload of file locks and fsync (rb_thread_io_blocking_call: excluded by"
  end

  def test_names_that_only_contain_a_functions_name_leave_it_alone
    output = offloading(MISSING, env: { "HEDDLE_OFFLOAD_IMPORTS" => "-mydlopen,dlopen,-dlopens" })

    assert_includes output, "[]\n"
  end

  # Another file stands for arguments that mean something else.
  UNKNOWN = <<~RUBY
    files = Array.new(2) { File.open(File::NULL) }
    Heddle::Offload::Switch.send(:check_io_calls, *files)
    Heddle.run { p files.first.flock(File::LOCK_EX) }
    p Heddle::Offload.threads[:calls]
    puts Heddle::Protection.summary
  RUBY

  def test_file_locks_run_in_place_where_the_arguments_are_unknown
    output = offloading(UNKNOWN, allow: false)

    assert_match(/\A0\n0\n.*off: offload of file locks and fsync \(rb_thread_io_blocking_call: this Ruby passes it/,
                 output)
  end
end
