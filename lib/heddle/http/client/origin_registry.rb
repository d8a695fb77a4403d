# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The origins of the process, with their idle connections. They outlive loops, threads and clients. A child
      # process starts with an empty registry.
      #
      # @api private
      module OriginRegistry
        # Seconds between checks for idle connections that have timed out, or that their server has closed.
        INTERVAL = 2
        # Seconds for which an origin without connections is kept.
        KEPT = 60
        private_constant :INTERVAL, :KEPT

        @lock = Lock.new
        @origins = {}
        @process = Process.pid
        @reaper = nil

        class << self
          # @return [OriginPool] the origin with this key; the block makes it if there is none
          def origin(key)
            found = @lock.synchronize do
              start_anew unless @process == Process.pid
              @origins[key]
            end
            return found if found

            made = yield
            origin = @lock.synchronize { @origins[key] ||= made }
            reap_later
            origin
          end

          # Restores an origin that was dropped while a request was about to use it.
          # @return [void]
          def restore(key, origin)
            # If another origin has the key now, this origin becomes its own key.
            @lock.synchronize { @origins[@origins.key?(key) ? origin : key] = origin }
            reap_later
          end

          # Drops the origins that have had no connection for `kept` seconds.
          # @return [void]
          def drop_unused(kept = KEPT)
            @lock.synchronize { @origins.delete_if { |key, origin| origin.retire(key, kept) } }
          end

          # @return [Array<OriginPool>] empty in a child process that has made none yet
          def origins = @lock.synchronize { @process == Process.pid ? @origins.values : [] }

          # @raise [Error] in a Ractor other than the main one, which owns the connections
          def check_ractor
            return if Ractor.current == Ractor.main

            raise Error, "HTTP::Client works only in the main Ractor, which owns the connections of the process: " \
                         "send the request from the main Ractor, or use Net::HTTP in this one"
          end

          # Closes all idle connections.
          # @return [void]
          def close_idle = origins.each { |origin| origin.close_idle(all: true) }

          # Starts the thread that checks the origins and their connections, if it does not run.
          # @return [void]
          def reap_later
            return if @reaper&.alive?

            @lock.synchronize { @reaper = Thread.new { reap } unless @reaper&.alive? }
          end

          private

          # Called in a forked child, because the connections belong to the parent.
          def start_anew
            @origins = {}
            @process = Process.pid
          end

          # Checks all origins.
          # @return [Boolean] whether any origin is left
          def any_left?
            origins.each(&:close_idle)
            drop_unused
            origins.any?
          end

          # Runs until there is no origin.
          def reap
            Thread.current.name = "heddle-http-client"
            Thread.current.report_on_exception = false
            sleep INTERVAL while any_left?
          end
        end
      end
    end
  end
end
