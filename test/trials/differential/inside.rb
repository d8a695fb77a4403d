# frozen_string_literal: true

# Required first by every process of a trial, in all four ways: runs each example of a suite where it belongs, and notes
# how it ended. In the first way nothing of Heddle is loaded; nor in `async`, which shows what another scheduler does.
#
#   HEDDLE_TRIAL_WAY        plain, loop, protected, chaos or async
#   HEDDLE_TRIAL_FRAMEWORK  the adapter in inside/
#   HEDDLE_TRIAL_RESULTS    the file that gets a line a start and an end of an example
#   HEDDLE_TRIAL_SKIP       a file of names that are not to be run again: they crashed or hung
#   HEDDLE_TRIAL_BESIDE     Ruby code that other fibers run meanwhile; its value must stay the same
#   HEDDLE_CHAOS            the seed of the fourth way
#   HEDDLE_CHAOS_DELAY      seconds that an offload thread waits at most in it, 0.002 if nothing else is said

require "json"

module Trials
  # Where an example runs.
  module Inside
    WAY = ENV.fetch("HEDDLE_TRIAL_WAY")
    SKIP_FILE = ENV.fetch("HEDDLE_TRIAL_SKIP")
    SKIPPED = File.exist?(SKIP_FILE) ? File.readlines(SKIP_FILE, chomp: true) : []
    # Files whose examples set a scheduler, or start loops of their own: they run in no other loop, in all ways.
    OWN_LOOP = ENV.fetch("HEDDLE_TRIAL_OWN_LOOP", "").split
    # Seconds between two turns of a fiber beside the example.
    PAUSE = 0.0005

    @process = Process.pid
    @results = File.open(ENV.fetch("HEDDLE_TRIAL_RESULTS"), "a").tap { |file| file.sync = true }

    class << self
      # @return [Boolean] it crashed or hung in this way before
      def skip?(name) = SKIPPED.include?(name)

      # Runs the block where this way wants it. A child that an example forks ends like any other process.
      # @param file [String] of the example, relative to the suite's folder
      def run(name, file: nil, &)
        note(started: name)
        return yield if OWN_LOOP.include?(file)

        case WAY
        when "plain" then yield
        when "async" then in_reactor(&)
        else in_loop(name, &)
        end
      end

      # @param result [String] pass, fail, error or skip
      def ended(name, result, message = nil)
        note(name:, result:, message: message.to_s.scrub.lines.first(3).join.slice(0, 400))
      end

      # The end of a program of ours: what it has printed is its result.
      def printed(name, text) = ended(name, "printed: #{text}")

      private

      def note(line)
        @results.write("#{JSON.generate(line)}\n") if Process.pid == @process
      end

      def in_loop(name)
        outcome = nil
        Heddle.run(name:) do
          Heddle.scope do |scope|
            beside.each { |job| scope.async(background: true) { keep_on(job) } }
            outcome = yield
          end
          # What an example leaves behind must not block the next one.
          Heddle::Concurrency::Context.of(Fiber.scheduler).cancel_unawaited
        end
        outcome
      end

      def in_reactor
        Sync do |task|
          jobs = beside.map { |job| task.async(transient: true) { keep_on(job) } }
          yield
        ensure
          jobs&.each(&:stop)
        end
      end

      def keep_on(job)
        loop do
          job.call
          sleep PAUSE
        end
      end

      # Two: one that only has its turn, and one that uses the library under trial.
      def beside
        @beside ||= begin
          code = ENV.fetch("HEDDLE_TRIAL_BESIDE", "")
          expected = code.empty? ? nil : Object.new.instance_eval(code)
          library = lambda do
            value = Object.new.instance_eval(code)
            ended("beside the examples", "error", "#{value.inspect}, not #{expected.inspect}") if value != expected
          end
          [-> {}, *(library unless code.empty?)]
        end
      end
    end

    case WAY
    when "plain" then nil
    when "async" then require "async"
    else
      require "heddle"
      Heddle.eager_load
      if WAY != "loop"
        Heddle.enable :offload
        Heddle.enable :preempt, **(WAY == "chaos" ? { slice: 0.001 } : {})
        Heddle.enable :stall_report, threshold: 60
        Heddle.enable :callback_report if ENV["HEDDLE_TRIAL_FRAMEWORK"] == "program" # see inside/program.rb
      end
      require_relative "inside/chaos" if WAY == "chaos"
    end
  end
end

require_relative "inside/#{ENV.fetch("HEDDLE_TRIAL_FRAMEWORK")}"
