# frozen_string_literal: true

module Heddle
  class Server
    # A listening socket that was already open when this program started, as systemd passes it (sd_listen_fds(3)).
    #
    # @!attribute io [TCPServer, UNIXServer]
    # @!attribute name [String] the FileDescriptorName= of its unit; "unknown" if there is none
    InheritedSocket = Data.define(:io, :name) do
      const_set(:FIRST, 3)

      class << self
        # @return [Boolean] whether the old master of a restart has passed on its sockets from systemd
        attr_accessor :from_old_master

        # @return [Boolean] whether a server without configured addresses should listen on the inherited sockets
        def any? = from_old_master || waiting.any?

        # Returns the sockets that no listener uses yet.
        # @return [Array<InheritedSocket>]
        def waiting = @waiting ||= find(ENV)

        # @yieldparam inherited [InheritedSocket]
        # @return [Array<InheritedSocket>] the sockets for which the block returns true; the caller owns them from now
        #   on
        def take(&)
          taken, @waiting = waiting.partition(&)
          taken
        end

        # Reads the variables that describe the sockets, and removes them, so that programs that this one starts don't
        # inherit them.
        # @param environment [Hash{String => String}]
        # @return [Array<InheritedSocket>] the listening TCP and unix sockets
        def find(environment)
          count = environment["LISTEN_FDS"].to_i
          return [] unless environment["LISTEN_PID"] == Process.pid.to_s && count.positive?

          names = environment["LISTEN_FDNAMES"].to_s.split(":", -1)

          %w[LISTEN_FDS LISTEN_PID LISTEN_FDNAMES].each { |name| environment.delete(name) }
          (0...count).filter_map { |index| listening(self::FIRST + index, names[index]) }
        end

        private

        def listening(descriptor, name)
          socket = BasicSocket.for_fd(descriptor)
          socket.autoclose = false
          return unless socket.getsockopt(:SOCKET, :ACCEPTCONN).bool

          io = (socket.local_address.unix? ? UNIXServer : TCPServer).for_fd(descriptor)
          io.close_on_exec = true
          new(io, name.to_s.empty? ? "unknown" : name)
        rescue SystemCallError, ArgumentError
          nil # the descriptor is not a socket, or not a listening one
        end
      end

      # @return [Addrinfo]
      def address = io.local_address
    end
  end
end
