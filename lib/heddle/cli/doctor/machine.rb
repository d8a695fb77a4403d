# frozen_string_literal: true

require "etc"
require "heddle/platform"

module Heddle
  module CLI
    class Doctor
      # Checks the machine, its limits and this Ruby.
      class Machine
        # Each connection needs a descriptor, so a lower limit is soon reached.
        DESCRIPTORS = 65_536
        # With guard pages a fiber takes two mappings (sysctl vm.max_map_count).
        MAPS_A_FIBER = 2
        USUAL_MAPS = 65_530
        private_constant :DESCRIPTORS, :MAPS_A_FIBER, :USUAL_MAPS

        # @param configuration [Server::Configuration] the server's
        def initialize(configuration)
          @configuration = configuration
        end

        # @return [Array<Finding>]
        def findings = [ruby, jit, kernel, selector, descriptors, mappings, memory, *protections].compact

        private

        def ruby
          text = "#{RUBY_VERSION} (#{RUBY_PLATFORM}), Heddle #{VERSION}"
          newer = Platform.newer_ruby or return ok("Ruby", text)

          warning("Ruby", "#{text}; #{newer}", "look for a newer Heddle, and check the protections below")
        end

        def jit
          return ok("JIT", "YJIT is on") if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
          unless defined?(RubyVM::YJIT)
            return note("JIT", "this Ruby has none", "a Ruby that was built with YJIT is faster")
          end

          note("JIT", "YJIT is off", "heddle serve switches it on, unless RUBY_YJIT_ENABLE is 0 or Rails' " \
                                     "config.yjit is false")
        end

        def kernel
          system = Etc.uname
          ok("system", "#{system[:sysname]} #{system[:release]}, " \
                       "#{@configuration.memory_budget.to_i / 1_048_576} MiB for the server, " \
                       "#{Etc.nprocessors} processors")
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

        # Where guard pages need no mapping of their own, only memory limits the number of fibers.
        def mappings
          guard_pages = Scheduler.guard_pages # :on, or why they need mappings
          return ok("fibers", "as many at once as fit into memory") if guard_pages == :on

          most = File.read("/proc/sys/vm/max_map_count").to_i
          text = "about #{most / MAPS_A_FIBER} at once: vm.max_map_count is #{most}, and #{guard_pages}"
          return ok("fibers", text) if most > USUAL_MAPS

          note("fibers", text, "if more requests must run at once: sysctl vm.max_map_count=1000000")
        rescue SystemCallError
          nil
        end

        def memory
          limit = @configuration.memory_budget or return
          return unless limit < 256 << 20

          larger = "use a larger container#{", or raise memory_limit" unless @configuration.memory_limit.zero?}"
          warning("memory", "#{limit / 1_048_576} MiB for all processes of the server", larger)
        end

        # Enables the configured protections for a moment, to see which ones work here.
        def protections
          why = @configuration.reasons_off
          usable = @configuration.protections.select { |name| usable?(name, why) }
          rows = Protection.during(usable) { Protection::Table.new(why).rows }
          on, off = rows.partition { |row| row.on || on_in_workers?(row) }
          on.map { |row| ok("protection", "on: #{on_in_workers?(row) ? row.name : row}", ADVICE[row.name]) } +
            off.group_by(&:text).map { |text, same| switched_off(same.map(&:name).join(", "), text) }
        end

        # The advice follows if the mode is the reason; the text then ends with the line that sets the mode.
        def switched_off(names, text)
          note("protection", "off: #{names}#{" (#{text})" if text}", (NEXT_STEP if text&.end_with?(mode_source)))
        end

        def mode_source = "mode #{@configuration.mode}: #{@configuration.source(:mode)}"

        # The requirements of a protection on the application.
        ADVICE = {
          "preempt" => "another request may run between any two lines: code must be as thread-safe as under Puma"
        }.freeze
        NEXT_STEP = "without that line, each request runs in a fiber, with all protections; HEDDLE_MODE=fiber heddle " \
                    "doctor lists code that does not work in fibers"
        private_constant :ADVICE, :NEXT_STEP

        # The handoff is off in this process, which has no workers, and on in each of several workers.
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
