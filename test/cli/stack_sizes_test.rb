# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/cli"
require "support/served_process"
require "tempfile"

# A request may call methods as deeply as under a server with threads.
class StackSizesTest < Minitest::Test
  SIZES = { "RUBY_FIBER_VM_STACK_SIZE" => nil, "RUBY_FIBER_MACHINE_STACK_SIZE" => nil }.freeze
  APPLICATION = <<~RUBY
    def deeper(level)
      @level = level
      deeper(level + 1)
    end

    def depth
      deeper(0)
    rescue SystemStackError
      @level
    end

    run lambda { |_env|
      [200, {}, [[depth, Thread.new { depth }.value, Process.pid, ENV["GIVEN"], $VERBOSE.inspect].join(" ")]]
    }
  RUBY

  def setup
    @config = Tempfile.create(["deep", ".ru"])
    @config.write(APPLICATION)
    @config.close
  end

  def teardown
    File.unlink(@config.path)
    @served&.stop
  end

  def test_a_request_recurses_as_deeply_as_a_thread_and_the_command_line_stays
    depth, of_thread, pid, given, verbose = serve(SIZES.merge("GIVEN" => "yes"))

    assert_operator depth.to_i, :>=, of_thread.to_i * 3 / 4
    assert_equal [@served.pid.to_s, "yes", "true"], [pid, given, verbose]
  end

  def test_sizes_that_the_environment_has_stay
    depth, of_thread = serve(SIZES.merge("RUBY_FIBER_VM_STACK_SIZE" => "131072"))

    assert_operator depth.to_i, :<, of_thread.to_i / 2
  end

  def test_only_commands_that_serve_begin_anew
    assert Heddle::CLI.serves?(["serve", "--port", "0"])
    assert Heddle::CLI.serves?([@config.path])
    assert Heddle::CLI.serves?(["--port", "0"])
    refute Heddle::CLI.serves?(["status"])
    refute Heddle::CLI.serves?(["unknown"])
  end

  private

  # Without protections: a fiber that is preempted where its stack ends gets the error later, outside of the rescue.
  def serve(environment)
    environment = environment.merge("HEDDLE_PROTECT" => "off")
    command = [RbConfig.ruby, "-w", *ServedProcess::HEDDLE.drop(1), "serve", @config.path, "--port", "0", "-w", "0"]
    @served = ServedProcess.new(command, environment:)
    @served.get("/").body.split
  end
end
