# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # How many processes and threads serve, and which protections they have. Included in {Configuration}.
      module Processes
        # @return [Integer] the number of serving processes. With `auto` it is at least 2, so that another one serves
        #   while one is stuck; {#fit_memory} reduces it if memory is short. In mode single it is 1: the process that
        #   was started, which has the terminal.
        def worker_count
          return 1 if mode == :single

          workers == :auto ? [Cores.available, 2].max : [workers, 1].max
        end

        # @return [Integer, nil] bytes that all processes together may use; nil: not known
        def memory_budget = memory_limit == 0 ? Memory.limit : memory_limit

        # @param application [Integer, nil] bytes of a process that has loaded the application, and serves nothing
        # @param master [Integer, nil] bytes of the master
        # @return [Configuration] if `workers` is auto: with the number of workers that fit into memory if each grows to
        #   the size of the application
        def fit_memory(application, master, budget = memory_budget)
          return self unless workers == :auto && application && master && budget

          with_workers([(budget - master - application) / application, worker_count].min.clamp(1..))
        end

        # @param count [Integer]
        # @return [Configuration]
        def with_workers(count)
          copy = clone(freeze: false)
          copy.instance_variable_set(:@workers, count)
          copy.freeze
        end

        # @param count [Integer] how many workers there are
        # @return [String, nil] why there are so many; nil unless `workers` is auto
        def describe_auto(count)
          return unless workers == :auto

          cores = Cores.available
          processors = "#{cores} #{cores == 1 ? "processor" : "processors"}"
          return "auto: #{processors}#{", at least 2" if cores < count}" unless count < worker_count

          "auto: as many as fit into #{memory_budget / 1_048_576} MiB; #{processors}"
        end

        # @return [Boolean] whether workers are separate processes, which can be replaced while the server runs. In
        #   development a single worker is the started process itself.
        def worker_processes?
          workers != 0 && mode != :single && (worker_count > 1 || !Options::ONE_PROCESS.include?(environment))
        end

        # @return [Numeric, nil] seconds, for the log line of a stop
        def drain_time = (drain_delay unless drain_delay.zero?)

        # @return [Array<Symbol>] the protections that are on when the server starts
        def protections
          return [] if protect.empty?

          untested ? possible_protections - Platform::UNTESTED_OFF : possible_protections
        end

        # @return [Array<Symbol>] the protections that `heddle protect on` switches on: the option's value, or its
        #   default if the value is `off`. Protections that this mode does not support are left out.
        def possible_protections
          wanted = protect.empty? ? Options::BY_NAME.fetch(:protect).default : protect
          wanted |= [:callback_report] if environment == "development" && wanted.include?(:stall_report)
          wanted.select { |name| Modes.fetch(mode).protects?(name) }
        end

        # @return [String, nil] the reason, if the option `protect` switches all protections off
        def without_protection = ("option protect, #{source(:protect)}" if protect.empty?)

        # @return [Hash{Symbol => String}] why the other protections are off
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

        # @return [String, nil] why protections that are on by default elsewhere are off on this platform. Naming them
        #   in the option `protect` switches them on.
        def untested = (Platform.untested if source(:protect).kind == :default)

        # @return [Integer] how many reserve workers there may be; 0 unless requests run in fibers, because only then a
        #   reserve can take over
        def reserve_count
          worker_processes? && mode == :fiber && protections.include?(:handoff) ? reserve_workers : 0
        end

        # @return [Integer] how many of the workers, the first ones, run without protection
        def unprotected_workers
          return 0 unless canary_unprotected.positive? && worker_processes?

          [(worker_count * canary_unprotected).round, 1].max
        end
      end
    end
  end
end
