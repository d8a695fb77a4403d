# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # How many processes and threads serve, and which protections they have. Included in {Configuration}.
      module Processes
        # @return [Integer] how many processes serve; with `auto` 2 at least: one that is stuck leaves another. In mode
        #   single it is the process that was started, which has the terminal.
        def worker_count
          return 1 if mode == :single

          workers == :auto ? [Cores.available, 2].max : [workers, 1].max
        end

        # @return [Boolean] whether they are processes of their own, which can be replaced while the server goes on; one
        #   worker for a person who develops is the process that was started
        def workers_of_their_own?
          workers != 0 && mode != :single && (worker_count > 1 || !Options::ONE_PROCESS.include?(environment))
        end

        # @return [Array<Symbol>] the protections that it starts with
        def protections
          return [] if protect.empty?

          untested ? possible_protections - Platform::UNTESTED_OFF : possible_protections
        end

        # @return [Array<Symbol>] the protections that `heddle protect on` switches on: those of the option, or its
        #   default where that is `off`, in this mode. Most concern the fibers of a loop; an application in a thread
        #   blocks others only while it keeps Ruby's lock
        def possible_protections
          wanted = protect.empty? ? Options::BY_NAME.fetch(:protect).default : protect
          wanted |= [:callback_report] if environment == "development" && wanted.include?(:stall_report)
          wanted.select { |name| Modes.fetch(mode).protects?(name) }
        end

        # @return [String, nil] why there is no protection at all, if the option `protect` says so
        def without_protection = ("option protect, #{source(:protect)}" if protect.empty?)

        # @return [Hash{Symbol => String}] the other protections, and the workers without them
        def left_out
          kind = Modes.fetch(mode)
          (Protection.names - protections).to_h do |name|
            reason = if !kind.protects?(name) then "#{kind.without}: #{source(:mode)}"
                     elsif !untested || !possible_protections.include?(name) then "option protect, #{source(:protect)}"
                     else "#{untested}: heddle protect on switches it on"
                     end
            [name, reason]
          end
        end

        # @return [String, nil] why protections that are on by default elsewhere are off on this platform. Who names
        #   them in the option `protect` has them.
        def untested = (Platform.untested if source(:protect).kind == :default)

        # @return [Integer] how many workers wait until all others are held up; only where a request has a fiber can
        #   they take over
        def reserve_count
          workers_of_their_own? && mode == :fiber && protections.include?(:handoff) ? reserve_workers : 0
        end

        # @return [Integer] how many of the workers, the first ones, run without protection
        def unprotected_workers
          return 0 unless canary_unprotected.positive? && workers_of_their_own?

          [(worker_count * canary_unprotected).round, 1].max
        end
      end
    end
  end
end
