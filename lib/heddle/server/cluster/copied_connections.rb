# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    module Cluster
      # Cuts off a new mold from connections of the worker that has forked it (option `refork_after`). The mold has
      # copies of the connections that the application has opened in that worker, for example to an upstream service.
      # All workers forked from the mold would send on the same connection, and one worker could get the response that
      # another one waits for.
      module CopiedConnections
        # @return [Array<String>] the sockets of this process; none without /proc
        def self.list = sockets.map(&:last)

        # Replaces the connections in this process by a closed one. When the application then reads from one of them, it
        # gets the end of the stream, as if the peer had closed the connection, and can connect again. The connections
        # themselves stay open in the worker.
        # @param known [Array<String>] the sockets that the worker had before it served; they are kept
        # @return [void]
        def self.cut(known)
          closed, peer = UNIXSocket.pair
          peer.close
          sockets.each { |number, name| replace(number, closed) unless known.include?(name) }
          closed.close
        end

        def self.sockets
          Dir.glob("/proc/self/fd/*").filter_map do |path|
            name = ::File.readlink(path)
            [::File.basename(path).to_i, name] if name.start_with?("socket:")
          rescue SystemCallError
            nil # glob itself opened this descriptor to read the folder, and has closed it
          end
        end

        # Replaces a connection. Keeps Heddle's own sockets: these are socket pairs, which have no address at the other
        # end.
        def self.replace(number, closed)
          socket = BasicSocket.for_fd(number)
          socket.autoclose = false
          address = socket.remote_address
          return if address.socktype != Socket::SOCK_STREAM || (address.unix? && address.unix_path.empty?)

          socket.reopen(closed)
        rescue Errno::ENOTCONN
          nil # it listens, or was never connected
        end
        private_class_method :sockets, :replace
      end
    end
  end
end
