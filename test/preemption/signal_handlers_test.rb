# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "support/scheduled"
require "support/served_process"
require "tmpdir"

# A program relies on a signal handler to be done before anything else of its thread continues, preemption or not.
class SignalHandlersTest < Minitest::Test
  include Scheduled

  ENABLED = "require 'heddle'; Heddle.enable :preempt, slice: 0.002\n"

  # Computes for so long by the clock of its thread, whoever runs meanwhile.
  COMPUTE = <<~RUBY
    def compute(seconds)
      ended = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) > ended
    end
  RUBY

  # Each sets one, however a program may do so; the fiber beside counts the turns that it gets meanwhile.
  HANDLERS = {
    "a_block" => "trap(:USR1) { handle }",
    "a_lambda" => "Signal.trap('USR1', ->(_number) { handle })",
    "a_method" => "def handler(_number) = handle; Kernel.trap('SIGUSR1', method(:handler))"
  }.freeze

  # Tests of applications look for modules without a name among ancestors, as Rails' own do.
  def test_every_module_among_the_ancestors_of_objects_has_a_name
    assert_equal "[]\n", run_program(<<~RUBY)
      #{ENABLED}
      Photo = Class.new
      p (Photo.ancestors + Kernel.singleton_class.ancestors).reject { |one| one.singleton_class? || one.name }
    RUBY
  end

  HANDLERS.each do |kind, set|
    define_method("test_#{kind}_that_handles_a_signal_is_not_left_before_it_has_ended") do
      assert_equal "[0, 0, 0, 0]\n", run_program(<<~RUBY)
        #{ENABLED}
        #{COMPUTE}
        $turns = 0
        $seen = []
        def handle
          before = $turns
          compute(0.03)
          $seen << $turns - before
        end
        #{set}
        Heddle.run do
          Heddle.async do
            while $seen.size < 4
              $turns += 1
              sleep 0
            end
          end
          4.times do |i|
            Process.kill(:USR1, Process.pid)
            nil until $seen.size > i # in Ruby code of this fiber
          end
        end
        p $seen
      RUBY
    end
  end

  def test_an_exception_of_a_handler_is_raised_and_its_fiber_is_preempted_again
    assert_equal "[\"from the handler\", 10]\ntrue\n", run_program(<<~RUBY)
      #{ENABLED}
      trap(:USR1) { |number| raise IOError, "from the handler" if number == Signal.list.fetch("USR1") }
      Heddle.run do
        begin
          Process.kill(:USR1, Process.pid)
          nil while true
        rescue IOError => e
          p [e.message, Signal.list.fetch("USR1")]
        end
        flag = false
        Heddle.async { flag = true }
        nil until flag
        p flag
      end
    RUBY
  end

  # As without preemption, and as in plain Ruby: code that computes never waits.
  def test_ctrl_c_is_raised_in_code_that_computes
    assert_equal "\"at once\"\n", run_program(<<~RUBY)
      #{ENABLED}
      Heddle.run do
        Process.kill(:INT, Process.pid)
        nil while true
      rescue Interrupt
        p "at once"
        exit! 0
      end
    RUBY
  end

  def test_trap_returns_the_former_handler
    assert_equal "[\"DEFAULT\", true, true, true, \"IGNORE\", \"DEFAULT\"]\n", run_program(<<~RUBY)
      #{ENABLED}
      first = proc {}
      second = method(:p)
      before = [trap(:USR2, first), trap(:USR2, second).equal?(first), Signal.trap("USR2") {}.equal?(second),
                Kernel.trap("SIGUSR2", "IGNORE").is_a?(Proc), trap(:USR2, "DEFAULT"), trap(:USR2, first)]
      p before
    RUBY
  end

  # Ruby's own words for what is wrong; and a method that is private stays so.
  def test_wrong_arguments_of_trap_raise_as_without_preemption
    program = <<~RUBY
      tries = [-> { trap(:USR2) }, -> { trap }, -> { trap(:USR2, 1, 2) }, -> { trap(:NONE) {} }, -> { 1.trap(:USR2) {} },
               -> { trap(:KILL) {} }]
      tries.each do |try|
        try.call
      rescue StandardError => e
        puts e.class, e.message
      end
    RUBY

    assert_equal run_program(program), run_program(ENABLED + program)
  end

  def test_handlers_of_an_application_that_is_served
    Dir.mktmpdir do |folder|
      file = File.join(folder, "config.ru")
      File.write(file, <<~RUBY)
        #{COMPUTE}
        turns = 0
        seen = nil
        trap(:WINCH) do
          before = turns
          compute(0.1)
          seen = turns - before
        end
        run(lambda do |_|
          Heddle.async do
            until seen
              turns += 1
              sleep 0
            end
          end
          Process.kill(:WINCH, Process.pid)
          nil until seen
          [200, {}, [seen.to_s]]
        end)
      RUBY
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", file, "-p", "0", "--no-access-log"])
      begin
        assert_equal "0", served.get("/").body
      ensure
        served.stop
      end
    end
  end

  private

  def run_program(program)
    output, status = ruby(program)

    assert_predicate status, :success?, output
    output
  end
end
