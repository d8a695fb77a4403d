# frozen_string_literal: true

require "heddle/command_line"

module Heddle
  class Server
    module Cluster
      # The resources that a master inherits from its predecessor: the sockets, the scoreboard, and the descriptor on
      # which it reports ready. They come as open descriptors, named in an environment variable.
      class Inheritance
        VARIABLE = "HEDDLE_INHERITED"
        # A new master writes this when it serves. Any other text is the reason why it could not start.
        READY = "ready\n"
        READY_WITHOUT_HANDOFF = "ready, with another format of handoffs\n"
        # Bytes that a pipe takes at once.
        REPORT_LIMIT = 4096

        # @return [Array<String>] the command line that has started this program
        attr_reader :command

        # @return [Inheritance] the inheritance of a master that replaces no other one
        def self.none = new({}, [])

        # Removes the variable from the environment, so that the application and its child processes don't see it.
        # @param environment [Hash{String => String}]
        # @return [Inheritance]
        def self.from_environment(environment = ENV)
          text = environment.delete(VARIABLE)
          new(text ? JSON.parse(text) : {}, CommandLine.read)
        rescue JSON::ParserError
          new({}, CommandLine.read)
        end

        # @param values [Hash{String => Object}] the values written by {NewMaster}
        # @param command [Array<String>]
        def initialize(values, command)
          @values = values
          @command = command
          @listeners = values["listeners"] || {}
          @ready = IO.for_fd(values["ready"], "w") if values["ready"]
        end

        # @return [Boolean]
        def any? = @values.any?

        # @param key [String] of a bind
        # @return [Boolean] whether there are sockets of this address
        def sockets?(key) = @listeners.key?(key)

        # @param key [String] of a bind
        # @return [Array<TCPServer, UNIXServer>] the sockets of this address; they are returned only once
        def sockets(key)
          (@listeners.delete(key) || []).map do |descriptor|
            unix = BasicSocket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.local_address.unix?
            (unix ? UNIXServer : TCPServer).for_fd(descriptor)
          end
        end

        # Closes inherited sockets without an address in the new configuration.
        # @return [void]
        def close_unused
          @listeners.each_value { |all| all.each { |descriptor| IO.for_fd(descriptor).close } }
          @listeners = {}
        end

        # @return [Net::Scoreboard, nil]
        def scoreboard
          memory, notify = @values["scoreboard"] # nil on platforms where only forked processes can share it
          Net::Scoreboard.for_fd(memory, notify) if memory
        rescue SystemCallError
          nil # another version: the workers of the two masters have no common scoreboard
        end

        # Takes over the keys, so that clients of the other master's workers can resume their TLS sessions here.
        # @return [void]
        def adopt_ticket_keys
          descriptor = @values["ticket_keys"] or return

          require "heddle/net/tls"
          Net::TLS::TicketKeys.adopt(descriptor)
        end

        # Takes over the messages, so that subscribers of the other master's workers find them here.
        # @return [void]
        def adopt_pubsub
          memory, wake = @values["pubsub"] # nil on platforms where only forked processes can share it
          PubSub::History.adopt(memory, wake) if memory
        end

        # @return [Array(BasicSocket, BasicSocket), nil] the socket pair by which the workers of both masters hand off
        #   connections; nil: they can't
        def handoff_sockets
          sockets = @values["pair"]&.map { |descriptor| UNIXSocket.for_fd(descriptor) }
          return sockets unless handoff_incompatible?

          sockets.each(&:close)
          nil
        end

        # Tells the other master that the workers serve, so that it ends.
        # @return [void]
        def report_ready
          report(handoff_incompatible? ? READY_WITHOUT_HANDOFF : READY)
        end

        # Tells the other master why this one could not start.
        # @param problem [String]
        # @return [Boolean] false: there is no other master
        def report_failure(problem)
          report(problem.byteslice(0, REPORT_LIMIT))
        end

        # @return [void]
        def close
          @ready&.close
          @ready = nil
        end

        private

        # Older masters send no version (nil) and don't know READY_WITHOUT_HANDOFF: they hand connections off anyway.
        def handoff_incompatible? = ![nil, Net::Sockets::HANDOFF_VERSION].include?(@values["handoff"])

        def report(text)
          return false unless @ready

          @ready.write(text)
          close
          true
        rescue SystemCallError
          false # the other master is gone already
        end
      end
    end
  end
end
