# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # How many processes serve, and which protections from stalls they have. Included in {Configuration}.
      module Processes
        # @return [Integer] the number of serving processes. With `auto` it is at least 2, so that one can serve while
        #   the other is blocked. {#fit_memory} lowers it if there is too little memory. In mode single it is 1: only
        #   the started process can use the terminal.
        def worker_count
          return 1 if mode == :single

          workers == :auto ? [Cores.available, 2].max : [workers, 1].max
        end

        # @return [Integer, nil] how many bytes of memory all processes together may use; nil: not known
        def memory_budget = memory_limit == 0 ? Memory.limit : memory_limit

        # @param application [Integer, nil] bytes of memory of a process that has only loaded the application; nil: not
        #   known
        # @param master [Integer, nil] bytes of memory of the master; nil: not known
        # @param budget [Integer, nil] bytes of memory for all processes together; nil: not known
        # @return [Configuration] a copy with as many workers as fit into the memory if each worker becomes as large as
        #   `application`: at least 1, and at most {#worker_count}. If `workers` is not auto, or one of the three sizes
        #   is not known, returns this configuration itself
        def fit_memory(application, master, budget = memory_budget)
          return self unless workers == :auto && application && master && budget

          with_workers([(budget - master - application) / application, worker_count].min.clamp(1..))
        end

        # @param count [Integer]
        # @return [Configuration] a copy with this number of workers
        def with_workers(count)
          copy = clone(freeze: false)
          copy.instance_variable_set(:@workers, count)
          copy.freeze
        end

        # @param count [Integer] how many workers there are
        # @return [String, nil] why `auto` has chosen this number; nil unless `workers` is auto
        def describe_auto(count)
          return unless workers == :auto

          cores = Cores.available
          processors = "#{cores} #{cores == 1 ? "processor" : "processors"}"
          return "auto: #{"at least 2 workers; " if cores < count}#{processors}" unless count < worker_count

          "auto: as many as fit into #{memory_budget / 1_048_576} MiB of memory; #{processors}"
        end

        # @return [Boolean] whether workers are separate processes, which can be replaced while the server runs. In
        #   development and in tests, a single worker is the started process itself.
        def worker_processes?
          workers != 0 && mode != :single && (worker_count > 1 || !Options::ONE_PROCESS.include?(environment))
        end

        # @return [Numeric, nil] the option `drain_delay` in seconds, for log lines; nil if the option is 0, so that log
        #   lines leave it out
        def drain_time = (drain_delay unless drain_delay.zero?)

        # @return [Array<Symbol>] the protections that are on when the server starts
        def protections
          return [] if protect.empty?

          untested ? possible_protections - Platform::UNTESTED_OFF : possible_protections
        end

        # @return [Array<Symbol>] the protections that `heddle protect on` switches on: those of the option `protect`,
        #   or the option's default if the option is `off`. In development, stall_report also switches callback_report
        #   on. Protections that this mode does not support are left out.
        def possible_protections
          wanted = protect.empty? ? Options::BY_NAME.fetch(:protect).default : protect
          wanted |= [:callback_report] if environment == "development" && wanted.include?(:stall_report)
          wanted.select { |name| Modes.fetch(mode).protects?(name) }
        end

        # @return [String, nil] where the option `protect` was set to `off`; nil if it is not `off`
        def without_protection = ("option protect, #{source(:protect)}" if protect.empty?)

        # @return [Hash{Symbol => String}] for each protection that is off, the reason
        def reasons_off
          kind = Modes.fetch(mode)
          (Protection.names - protections).to_h do |name|
            reason = if !kind.protects?(name) then "#{kind.without}: #{source(:mode)}"
                     elsif !untested || !possible_protections.include?(name) then "option protect, #{source(:protect)}"
                     else "#{untested}: heddle protect on switches it on"
                     end
            [name, reason]
          end
        end

        # @return [String, nil] the reason why not all protections are on by default, if Heddle is not tested on this
        #   platform; otherwise nil. Also nil if the option `protect` is set, because this option then decides which
        #   protections are on.
        def untested = (Platform.untested if source(:protect).kind == :default)

        # @return [Integer] the maximum number of reserve workers, which serve only while all others are blocked; 0
        #   unless requests run in fibers of worker processes, and the protection handoff is on
        def reserve_count
          worker_processes? && mode == :fiber && protections.include?(:handoff) ? reserve_workers : 0
        end

        # @return [Integer] how many workers run without protections, so that operators can compare them with the other
        #   workers. These are the workers with the lowest numbers
        def unprotected_workers
          return 0 unless canary_unprotected.positive? && worker_processes?

          [(worker_count * canary_unprotected).round, 1].max
        end
      end
    end
  end
end
