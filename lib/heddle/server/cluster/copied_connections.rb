# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    module Cluster
      # Connections that the application has opened while a worker served, for example to an upstream service, in the
      # copy of that worker that becomes the mold. All workers forked from the copy would send on the same connection,
      # and one could get the response that another is waiting for.
      module CopiedConnections
        # @return [Array<String>] the sockets of this process; none without /proc
        def self.list = sockets.map(&:last)

        # Cuts this process off from the connections. Reading from one finds the end of the stream, as when the peer has
        # closed it, so that the application connects anew. The connections themselves stay open in the worker.
        # @param known [Array<String>] the sockets of the worker before it served, which stay
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
            nil # the descriptor of the folder itself
          end
        end

        # Heddle's own sockets have no address at the other end.
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
