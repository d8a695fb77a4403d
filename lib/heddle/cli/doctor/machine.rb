# frozen_string_literal: true

require "etc"
require "heddle/platform"

module Heddle
  module CLI
    class Doctor
      # Checks the machine, its limits and this Ruby, and which protections work here.
      class Machine
        # With fewer descriptors than this, doctor warns: each connection needs one.
        DESCRIPTORS = 65_536
        # Memory mappings that a fiber needs if guard pages need mappings, and the usual limit of a process's mappings
        # (sysctl vm.max_map_count).
        MAPS_A_FIBER = 2
        USUAL_MAPS = 65_530
        private_constant :DESCRIPTORS, :MAPS_A_FIBER, :USUAL_MAPS

        # @param configuration [Server::Configuration] the configuration of the server
        def initialize(configuration)
          @configuration = configuration
        end

        # @return [Array<Finding>]
        def findings = [ruby, jit, kernel, selector, descriptors, mappings, memory, *protections].compact

        private

        def ruby
          text = "#{RUBY_VERSION} (#{RUBY_PLATFORM}), Heddle #{VERSION}"
          newer = Platform.newer_ruby or return ok("Ruby", text)

          warning("Ruby", "#{text}; #{newer}", "update Heddle if there is a newer version, and check below whether " \
                                               "the protections are on")
        end

        def jit
          return ok("JIT", "YJIT is on") if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
          unless defined?(RubyVM::YJIT)
            return note("JIT", "this Ruby has no YJIT", "a Ruby that is built with YJIT is faster")
          end

          note("JIT", "YJIT is off", "heddle serve switches it on, unless RUBY_YJIT_ENABLE is 0 or Rails' " \
                                     "config.yjit is false")
        end

        def kernel
          system = Etc.uname
          budget = @configuration.memory_budget
          memory = budget ? "#{budget / 1_048_576} MiB for the server" : "memory of unknown size"
          ok("system", "#{system[:sysname]} #{system[:release]}, #{memory}, #{Etc.nprocessors} processors")
        end

        def selector
          best = Selector.best
          refused = Selector.built.take_while { |name| name != best }.filter_map do |name|
            reason = Selector.unavailable_reason(name)
            "#{name} can't run here: #{reason}" if reason
          end
          text = "#{best}#{" (HEDDLE_SELECTOR)" unless ENV.fetch(Selector::VARIABLE, "").empty?}"
          return ok("selector", text) if refused.empty?

          note("selector", "#{text}; #{refused.join("; ")}", "no action needed: the server works with #{best}, too")
        rescue ArgumentError => e
          problem("selector", e.message, "remove #{Selector::VARIABLE} from the environment, or correct it")
        end

        def descriptors
          _, hard = Process.getrlimit(Process::RLIMIT_NOFILE)
          return ok("descriptors", "up to #{hard}") if hard >= DESCRIPTORS

          warning("descriptors", "at most #{hard}, and thus at most about #{hard} connections",
                  "raise the hard limit: LimitNOFILE= in a systemd unit, ulimits in a container, limits.conf")
        end

        # If guard pages need no separate mappings, only memory limits the number of fibers.
        def mappings
          guard_pages = Scheduler.guard_pages # :on, or the reason why they need mappings
          return ok("fibers", "only memory limits their number") if guard_pages == :on

          most = File.read("/proc/sys/vm/max_map_count").to_i
          text = "about #{most / MAPS_A_FIBER} at once, because vm.max_map_count is #{most} and guard pages need " \
                 "mappings (#{guard_pages})"
          return ok("fibers", text) if most > USUAL_MAPS

          note("fibers", text, "to run more requests at once, raise the limit: sysctl vm.max_map_count=1000000")
        rescue SystemCallError
          nil
        end

        def memory
          limit = @configuration.memory_budget or return
          return unless limit < 256 << 20

          larger = "use a larger container#{", or raise memory_limit" unless @configuration.memory_limit.zero?}"
          warning("memory", "#{limit / 1_048_576} MiB for all processes of the server", larger)
        end

        # Enables the configured protections for a moment, to find out which of them work on this machine.
        def protections
          why = @configuration.reasons_off
          usable = @configuration.protections.select { |name| usable?(name, why) }
          rows = Protection.during(usable) { Protection::Table.new(why).rows }
          on, off = rows.partition { |row| row.on || on_in_workers?(row) }
          on.map { |row| ok("protection", "on: #{on_in_workers?(row) ? row.name : row}", ADVICE[row.name]) } +
            off.group_by(&:text).map { |text, same| switched_off(same.map(&:name).join(", "), text) }
        end

        # If the mode is the reason, the text ends with the place that sets the mode, and the finding has advice.
        def switched_off(names, text)
          note("protection", "off: #{names}#{" (#{text})" if text}", (NEXT_STEP if text&.end_with?(mode_source)))
        end

        def mode_source = "mode #{@configuration.mode}: #{@configuration.source(:mode)}"

        # What a protection requires of the application.
        ADVICE = {
          "preempt" => "another request can run between any two lines of code, so the code must be as thread-safe as " \
                       "under Puma"
        }.freeze
        NEXT_STEP = "without that setting, each request runs in a fiber, with all protections; to find code that " \
                    "does not work in fibers, run HEDDLE_MODE=fiber heddle doctor"
        private_constant :ADVICE, :NEXT_STEP

        # The protection handoff is off in this process, but on in the workers if there are several.
        def on_in_workers?(row)
          row.name == "handoff" && @configuration.protections.include?(:handoff) && @configuration.worker_count > 1
        end

        def usable?(name, why)
          Protection.during([name]) { true }
        rescue LoadError, StandardError => e
          why[name] = e.message
          false
        end

        def ok(subject, text, advice = nil) = Finding.new(level: :ok, subject:, text:, advice:)

        def note(subject, text, advice = nil) = Finding.new(level: :note, subject:, text:, advice:)

        def warning(subject, text, advice) = Finding.new(level: :warning, subject:, text:, advice:)

        def problem(subject, text, advice) = Finding.new(level: :problem, subject:, text:, advice:)
      end
    end
  end
end
