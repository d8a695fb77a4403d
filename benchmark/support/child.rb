# frozen_string_literal: true

require "json"
require "rbconfig"
require "tempfile"

module Bench
  # A contestant at work in a process of its own, seen from the parent. The child says what it has to say as lines of
  # JSON on its standard output; what libraries print ends on standard error and is shown only when the child fails.
  class Child
    # The child ended without a result, or took too long.
    class Failed < StandardError; end

    PROGRAM = File.expand_path("child_program.rb", __dir__)

    attr_reader :pid

    # @param arguments [Array<String>] for the child program
    # @param environment [Hash]
    # @param ruby_flags [Array<String>]
    # @param core [Integer, nil] the core to pin the child to, where the machine has `taskset`
    # @param time_limit [Numeric] seconds until the child must have answered
    def initialize(arguments, environment: {}, ruby_flags: [], core: nil, time_limit: 60, program: PROGRAM)
      @deadline = now + time_limit
      @time_limit = time_limit
      @errors = Tempfile.new("bench-child")
      @output, writer = IO.pipe
      # Without a pipe of its own a child that waits for input would read the terminal of the benchmark's user.
      @pid = Process.spawn(environment, *Child.pin(core), RbConfig.ruby, *ruby_flags, program, *arguments,
                           in: File::NULL, out: writer, err: @errors.path)
      writer.close
      @buffer = +""
    end

    # @return [Array<String>] what to put before a command to keep it on one core
    def self.pin(core)
      return [] unless core && Etc.nprocessors > 1 && taskset?

      ["taskset", "-c", core.to_s]
    end

    def self.taskset?
      return @taskset unless @taskset.nil?

      @taskset = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
                    .any? { |folder| File.executable?(File.join(folder, "taskset")) }
    end

    # @return [Hash] the next thing the child says
    # @raise [Failed]
    def message
      until (line = @buffer.slice!(/\A.*\n/))
        @buffer << read_more
      end
      JSON.parse(line, symbolize_names: true)
    end

    # @return [Hash] the sample that the child measured
    # @raise [Failed] with the child's own words
    def result
      answer = message
      raise Failed, answer[:failure] if answer[:failure]

      answer
    end

    # Why something that was asked of the child went wrong: its own words if it had any, else those of the caller.
    #
    # @param error [Failed]
    # @return [Failed]
    def explain(error)
      @deadline = now + 1
      Failed.new(message[:failure] || error.message)
    rescue Failed => e
      ended? ? e : error
    end

    # Ends the child, if it has not ended by itself.
    def close
      stop unless ended?
      @output.close
      @errors.close!
    end

    # @return [Boolean]
    def ended? = !!(@status || reap(Process::WNOHANG))

    private

    def stop
      Process.kill(:KILL, @pid)
      reap(0)
    rescue Errno::ESRCH
      nil
    end

    def reap(flags)
      _, status = Process.wait2(@pid, flags)
      @status = status
    rescue Errno::ECHILD
      @status = true
    end

    def read_more
      remaining = @deadline - now
      raise Failed, "no answer within #{@time_limit} s" unless remaining.positive? && @output.wait_readable(remaining)

      @output.readpartial(65_536)
    rescue EOFError
      reap(0) unless @status
      raise Failed, "ended without a result (#{ending}): #{last_words}"
    end

    def ending
      return "status unknown" unless @status.is_a?(Process::Status)

      @status.signaled? ? "signal #{Signal.signame(@status.termsig)}" : "status #{@status.exitstatus}"
    end

    def last_words = LastWords.of(File.read(@errors.path))

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
