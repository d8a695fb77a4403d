# frozen_string_literal: true

require "heddle/command_line"

module Heddle
  class Server
    module Cluster
      # The resources that a new master inherits from the old one (`heddle restart`): the listening sockets, shared
      # memory such as the scoreboard, and the pipe on which the new master reports that it serves. They are open
      # descriptors, whose numbers are in an environment variable.
      class Inheritance
        VARIABLE = "HEDDLE_INHERITED"
        # A new master reports one of these two texts when it serves. Any other text is the reason why it could not
        # start.
        READY = "ready\n"
        READY_WITHOUT_HANDOFF = "ready, with another format of handoffs\n"
        # Maximum number of bytes of a report. A pipe accepts this many bytes in one write (PIPE_BUF).
        REPORT_LIMIT = 4096

        # @return [Array<String>] the command line of this process, with which a new master is started
        attr_reader :command

        # Reads the inheritance. Removes the variable from the environment, so that the application and its child
        # processes don't see it.
        # @param environment [Hash{String => String}]
        # @return [Inheritance]
        def self.from_environment(environment = ENV)
          text = environment.delete(VARIABLE)
          new(text ? JSON.parse(text) : {}, CommandLine.read)
        rescue JSON::ParserError
          new({}, CommandLine.read)
        end

        # @param values [Hash{String => Object}] the values that {NewMaster} has written
        # @param command [Array<String>]
        def initialize(values, command)
          @values = values
          @command = command
          @listeners = values["listeners"] || {}
          @ready = IO.for_fd(values["ready"], "w") if values["ready"]
          # These descriptors were inherited through exec. Programs that the application starts must not inherit them.
          others = [@listeners.values, values.values_at("pair", "scoreboard", "ticket_keys", "pubsub")].flatten.compact
          [@ready, *others.map { |one| IO.for_fd(one, autoclose: false) }].each { |io| io&.close_on_exec = true }
        end

        # @return [Boolean] whether this master replaces another one
        def any? = @values.any?

        # @param key [String] the key of a bind, such as {TCPBind#key}
        # @return [Boolean] whether the old master had sockets of this address
        def sockets?(key) = @listeners.key?(key)

        # @param key [String] the key of a bind, such as {TCPBind#key}
        # @return [Array<TCPServer, UNIXServer>] the sockets of this address; a second call returns none
        def sockets(key)
          (@listeners.delete(key) || []).map do |descriptor|
            unix = BasicSocket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.local_address.unix?
            (unix ? UNIXServer : TCPServer).for_fd(descriptor)
          end
        end

        # Closes the inherited sockets whose addresses are not in the new configuration.
        # @return [void]
        def close_unused
          @listeners.each_value { |all| all.each { |descriptor| IO.for_fd(descriptor).close } }
          @listeners = {}
        end

        # @return [Net::Scoreboard, nil] the scoreboard (shared memory with the load of each worker); nil: there is no
        #   old master, or the masters can't share a scoreboard
        def scoreboard
          memory, notify = @values["scoreboard"] # nil on platforms where only forked processes can share memory
          Net::Scoreboard.for_fd(memory, notify) if memory
        rescue SystemCallError
          nil # the scoreboard has another format, so the workers of both masters share no scoreboard
        end

        # Takes over the keys of TLS session tickets, so that clients of the old master's workers can resume their
        # sessions.
        # @return [void]
        def adopt_ticket_keys
          descriptor = @values["ticket_keys"] or return

          require "heddle/net/tls"
          Net::TLS::TicketKeys.adopt(descriptor)
        end

        # Takes over the pub/sub messages, so that subscribers that reconnect from the old master's workers miss none.
        # @return [void]
        def adopt_pubsub
          memory, wake = @values["pubsub"] # nil on platforms where only forked processes can share memory
          PubSub::History.adopt(memory, wake) if memory
        end

        # @return [Array(BasicSocket, BasicSocket), nil] the socket pair over which the workers of both masters hand off
        #   connections; nil: there is no old master, or it uses another format for handoffs
        def handoff_sockets
          sockets = @values["pair"]&.map { |descriptor| UNIXSocket.for_fd(descriptor) }
          return sockets unless handoff_incompatible?

          sockets.each(&:close)
          nil
        end

        # Reports to the old master that the new workers serve. The old master then ends.
        # @return [void]
        def report_ready
          report(handoff_incompatible? ? READY_WITHOUT_HANDOFF : READY)
        end

        # Reports to the old master why this one could not start.
        # @param problem [String]
        # @return [Boolean] whether it was reported; false: there is no old master
        def report_failure(problem)
          report(problem.byteslice(0, REPORT_LIMIT))
        end

        # @return [Boolean] whether the old master waits for the report, and serves meanwhile
        def pending? = !@ready.nil?

        # @return [void]
        def close
          @ready&.close
          @ready = nil
        end

        private

        # Masters of early versions of Heddle send no format version (nil). They hand connections off in any case, and
        # would take READY_WITHOUT_HANDOFF for a failure.
        def handoff_incompatible? = ![nil, Net::Sockets::HANDOFF_VERSION].include?(@values["handoff"])

        def report(text)
          return false unless @ready

          @ready.write(text)
          true
        rescue SystemCallError
          false # the old master has already ended
        ensure
          close
        end
      end
    end
  end
end
