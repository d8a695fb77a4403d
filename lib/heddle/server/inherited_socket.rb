# frozen_string_literal: true

module Heddle
  class Server
    # Listening sockets that were open when this program began, as systemd hands them over (sd_listen_fds(3)).
    #
    # @!attribute io [TCPServer, UNIXServer]
    # @!attribute name [String] FileDescriptorName= of its unit; "unknown" where there is none
    InheritedSocket = Data.define(:io, :name) do
      const_set(:FIRST, 3)

      class << self
        # @return [Boolean] whether they come from the master that this one replaces
        attr_accessor :handed_on

        # Should a server without configured addresses listen on the inherited sockets?
        # @return [Boolean]
        def any? = handed_on || waiting.any?

        # The sockets that no listener has taken yet.
        # @return [Array<InheritedSocket>]
        def waiting = @waiting ||= find(ENV)

        # @yieldparam inherited [InheritedSocket]
        # @return [Array<InheritedSocket>] those for which the block is true; from now on they belong to the caller
        def take(&)
          taken, @waiting = waiting.partition(&)
          taken
        end

        # Reads the three variables, and removes them, because they are not for programs that this one starts.
        # @param environment [Hash{String => String}]
        # @return [Array<InheritedSocket>]
        def find(environment)
          count = environment["LISTEN_FDS"].to_i
          meant = environment["LISTEN_PID"] == Process.pid.to_s && count.positive?
          names = environment["LISTEN_FDNAMES"].to_s.split(":", -1)
          return [] unless meant

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
          nil # it is not a socket, or not a listening one
        end
      end

      # @return [Addrinfo]
      def address = io.local_address
    end
  end
end
