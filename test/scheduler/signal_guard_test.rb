# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# A signal that ends a program ends its loop in order, wherever it arrives.
class SignalGuardTest < Minitest::Test
  include Scheduled

  # Sends the signal from within Heddle's own code: just before the end of the task `child` is told to its scope.
  STRIKE = <<~RUBY
    require "heddle"
    own = Heddle::Concurrency::TaskFrame.instance_method(:settle).source_location.first
    strike = Module.new
    strike.module_eval("def settle = (name == 'child' && Process.kill(SIGNAL, Process.pid); super)", own)
    Heddle::Concurrency::TaskFrame.prepend(strike)
    $stdout.sync = true
  RUBY

  def strike(signal, program)
    out, status = ruby("SIGNAL = #{signal.inspect}\n#{STRIKE}#{program}")
    [out.lines(chomp: true), status]
  end

  %w[INT TERM HUP].each do |signal|
    define_method(:"test_#{signal}_amid_the_end_of_a_task_is_raised_when_that_is_done") do
      out, = strike(signal, <<~RUBY)
        begin
          Heddle.run do
            child = Heddle.async(name: "child") {}
            sleep
          ensure
            puts "child is \#{child.state}"
          end
        rescue SignalException => e
          puts e.signm.delete_prefix("SIG")
        end
      RUBY

      assert_equal ["child is finished", signal == "INT" ? "" : signal], out
    end
  end

  # Which leaves the task half-ended: nobody may wait for it after that.
  def test_a_second_signal_is_raised_at_once_and_ends_the_program
    out, = strike("INT", <<~RUBY)
      twice = Module.new
      twice.module_eval("def settle = (Process.kill(:INT, Process.pid) if name == 'child'; super)", own)
      Heddle::Concurrency::TaskFrame.prepend(twice)
      begin
        Heddle.run do
          Heddle.async(name: "child") {}
          sleep
        end
      rescue Interrupt => e
        puts e.class
      end
    RUBY

    assert_equal %w[Interrupt], out
  end

  def test_a_signal_in_application_code_is_raised_at_once
    out, = strike("INT", <<~RUBY)
      Heddle.run do
        [1].each { Process.kill(:INT, Process.pid) }
        puts "never"
      rescue Interrupt
        puts "at once"
      end
    RUBY

    assert_equal ["at once"], out.first(1)
  end

  def test_a_signal_points_to_the_line_that_runs_the_loop_or_was_interrupted
    out, = ruby(<<~RUBY)
      require "heddle"
      ready = -> { Thread.new { sleep(0.001) until Thread.main.stop?; Process.kill(:INT, Process.pid) } }
      begin
        Heddle.run { ready.call && sleep }
      rescue Interrupt => e
        puts e.backtrace.first
      end
      begin
        Heddle.run { Process.kill(:INT, Process.pid); loop { sleep 0 } }
      rescue Interrupt => e
        puts e.backtrace.first
      end
    RUBY

    assert_match(/\A[^\n]*:4:in .*\n[^\n]*:9:in .*\n\z/, out)
    refute_includes out, "heddle/"
  end

  def test_a_signal_that_is_not_rescued_ends_the_program
    _, status = strike("TERM", <<~RUBY)
      Heddle.run do
        Heddle.async(name: "child") {}
        sleep
      end
    RUBY

    assert_equal Signal.list["TERM"], status.termsig
  end

  def test_handlers_of_the_program_are_left_alone_and_the_default_comes_back
    out, = strike("INT", <<~RUBY)
      trap("INT") { puts "mine" }
      Heddle.run do
        Heddle.async(name: "child") {}
        trap("HUP", "IGNORE")
      end
      p trap("INT", "DEFAULT").class, trap("TERM", "DEFAULT"), trap("HUP", "DEFAULT")
    RUBY

    assert_equal ["mine", "Proc", "DEFAULT".inspect, "IGNORE".inspect], out
  end
end
