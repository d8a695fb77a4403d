# frozen_string_literal: true

# test: sanitize

require_relative "support/offloaded"

# A time limit ends a native call that runs on the loop's own thread, as Timeout's thread ends it in plain Ruby.
class OffloadInPlaceTest < Minitest::Test
  include Offloaded

  HEAD = <<~RUBY
    require "timeout"
    LIMIT = 0.2 # the call has begun when it is over
    LONG = 60
    def report(name) = print("\#{name}: \#{yield.inspect}\n")
    def rescued
      yield
    rescue Timeout::Error => e
      e.class
    end
    at_exit { report("offloaded") { Heddle::Offload.functions.sum { |function| function[:offloaded] } } }
  RUBY

  def in_place(program) = offloading(HEAD + program, allow: false)

  def test_a_time_limit_ends_a_call_by_the_librarys_own_function
    assert_equal <<~TEXT, in_place(<<~RUBY)
      Timeout: Timeout::Error
      told to end: 1
      the next one: :met
      offloaded: 0
    TEXT
      Heddle.run do
        report("Timeout") { rescued { Timeout.timeout(LIMIT) { NativeCalls.meet(2) } } }
        report("told to end") { NativeCalls.cancelled }
        report("the next one") { Timeout.timeout(LONG) { NativeCalls.meet(1) } }
      end
    RUBY
  end

  # The first signal may come just before the system call that it is to interrupt.
  def test_a_time_limit_interrupts_system_calls_until_the_call_ends
    assert_equal <<~TEXT, in_place(<<~RUBY)
      once: Timeout::Error
      twenty: Timeout::Error
      offloaded: 0
    TEXT
      Heddle.run do
        report("once") { rescued { Timeout.timeout(LIMIT) { NativeCalls.sleep_for(LONG) } } }
        report("twenty") { rescued { Timeout.timeout(LIMIT) { NativeCalls.doze(LONG) } } }
      end
    RUBY
  end

  def test_a_call_that_must_return_is_raised_in_where_its_caller_takes_interrupts
    assert_equal <<~TEXT, in_place(<<~RUBY)
      by itself: :cancelled
      at the next wait: Timeout::Error
      begun too late: false
      offloaded: 0
    TEXT
      Heddle.run do
        late = nil
        ended = rescued do
          Timeout.timeout(LIMIT) do
            report("by itself") { NativeCalls.meet2(2) }
            late = NativeCalls.meet2(1)
            sleep
          end
        end
        report("at the next wait") { ended }
        report("begun too late") { late }
      end
    RUBY
  end

  # The native function that has called back is left there.
  def test_a_time_limit_ends_the_call_that_a_callback_makes
    assert_equal <<~TEXT, in_place(<<~RUBY)
      nested: Timeout::Error
      afterwards: [3, 1, true]
      and again: Timeout::Error
      offloaded: 0
    TEXT
      Heddle.run do
        report("nested") { rescued { Timeout.timeout(LIMIT) { NativeCalls.call_back(1) { NativeCalls.meet(2) } } } }
        report("afterwards") { Timeout.timeout(LONG) { NativeCalls.call_back(1) { 3 } } }
        report("and again") do
          rescued { Timeout.timeout(LIMIT) { NativeCalls.call_back(2) { |done| NativeCalls.meet(2) if done == 1 } } }
        end
      end
    RUBY
  end

  def test_a_delayed_time_limit_ends_no_call
    assert_equal <<~TEXT, in_place(<<~RUBY)
      delayed: [true, 0]
      after the block: Timeout::Error
      not delayed: Timeout::Error
      told to end: 1
      offloaded: 0
    TEXT
      Heddle.run do
        ended = rescued do
          Timeout.timeout(LIMIT) do
            Thread.handle_interrupt(Timeout::ExitException => :never) do
              report("delayed") { [NativeCalls.ignore_unblocking(0.3), NativeCalls.cancelled] }
            end
          end
        end
        report("after the block") { ended }
        report("not delayed") { rescued { Timeout.timeout(LIMIT) { NativeCalls.ignore_unblocking(0.3) } } }
        report("told to end") { NativeCalls.cancelled }
      end
    RUBY
  end

  def test_a_forked_child_has_time_limits_of_its_own
    assert_equal <<~TEXT, in_place(<<~RUBY)
      parent: Timeout::Error
      child: Timeout::Error
    TEXT
      $stdout.sync = true
      Heddle.disable :callback_report # the child is waited for in the callback
      Heddle.run do
        report("parent") { rescued { Timeout.timeout(LIMIT) { NativeCalls.meet(2) } } }
        NativeCalls.call_back(1) do
          Process.wait(fork do
            report("child") { rescued { Timeout.timeout(LIMIT) { NativeCalls.meet(2) } } }
            exit!(0)
          end)
        end
        exit!(0)
      end
    RUBY
  end
end
