# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Sends requests to a running server over its control socket.
      class Client
        # Seconds that a response may take by default.
        TIMEOUT = 10
        # Seconds that the response may take in addition to a recording's duration, because the server writes a file.
        RECORD_TIMEOUT = 60
        # The user id that Linux reports for the peer of a socket that is not connected.
        NO_PEER = 0xffff_ffff
        SILENT = "The process is suspended, or native code in it holds the GVL. See its log, and the output of `ps`"
        private_constant :TIMEOUT, :NO_PEER, :SILENT

        # Raised if no Heddle server responds at the address. The message says why.
        class NoServerError < OwnError; end

        # Raised if no server listens on the address. The message has advice for users of the command line.
        class NotRunningError < NoServerError
        end

        # Raised if the server rejects a request. The message is the server's response.
        class DeclinedError < OwnError; end

        # Raised if the server rejects a message because it is too large.
        class TooLargeError < DeclinedError
        end

        # @param address [Address]
        # @param timeout [Numeric] seconds that a response may take
        def initialize(address, timeout: TIMEOUT)
          @address = address
          @timeout = timeout
        end

        # @return [Hash{Symbol => Object}] see {SingleProcess#report} and {Cluster#report}
        # @raise [NoServerError]
        def status
          report = JSON.parse(ask("GET", "/status"), symbolize_names: true)
          unless report.is_a?(Hash) && report[:workers].is_a?(Array) && report[:workers].all?(Hash)
            raise NoServerError, foreign("its status has no list of workers")
          end

          report
        rescue JSON::ParserError
          raise NoServerError, foreign("its status is not JSON")
        end

        # @return [String] a tree of all tasks, as text
        # @raise [NoServerError]
        def tasks = ask("GET", "/tasks")

        # Sends a command, and does not wait until it is done.
        # @param name [String] the command, such as "reload"
        # @return [String] what the server does now
        # @raise [NoServerError]
        # @raise [DeclinedError]
        def command(name) = ask("POST", "/#{name}").chomp

        # Records for the given time what all requests do, and waits until the files are written.
        # @param seconds [Float]
        # @return [String] the paths of the files, one in each line
        # @raise [NoServerError]
        # @raise [DeclinedError] if no file was written; the message says why
        def record(seconds) = ask("POST", "/record?seconds=#{seconds}", timeout: seconds + RECORD_TIMEOUT).chomp

        # Sends a command, and waits until it is done.
        # @param name [String] the command, such as "reload"
        # @return [String] what the server has done
        # @raise [NoServerError]
        # @raise [DeclinedError] if the command failed; the message says why
        def complete(name)
          # The command has no time limit. So another request first finds out whether the server responds at all.
          begin
            ask("GET", "/health/live")
          rescue DeclinedError
            # The server is unhealthy, but responds.
          end
          ask("POST", "/#{name}?wait", timeout: nil).chomp
        end

        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position in the pub/sub history
        # @raise [NoServerError]
        # @raise [TooLargeError]
        # @raise [DeclinedError]
        def publish(topic, data)
          require "uri" # loaded only here, because nothing else in this class needs it
          ask("POST", "/publish?#{URI.encode_www_form(topic:)}", data).chomp
        end

        # Waits until the server has stopped. The block must stop the server.
        # @yield after the request that waits is sent. The server accepts connections in order, so it receives that
        #   request before the command that the block sends
        # @return [Boolean, nil] whether every request was answered; nil: the server has stopped without a response
        # @raise [NoServerError]
        # @raise [DeclinedError]
        def await_end
          socket = connect
          socket.timeout = nil
          request(socket, "GET", "/ended")
          yield
          begin
            JSON.parse(answer(socket))["answered"]
          rescue NoServerError, DeclinedError, SystemCallError, JSON::ParserError
            nil
          end
        ensure
          socket&.close
        end

        # @return [Boolean] whether a server listens on the address; false also if this user can't connect to it
        def running?
          connect.close
          true
        rescue NoServerError
          false
        end

        private

        def foreign(reason) = "the process that responds at #{@address} is not a Heddle server: #{reason}"

        def ask(method, path, content = "", timeout: @timeout)
          socket = connect
          socket.timeout = timeout
          request(socket, method, path, content)
          answer(socket)
        rescue IO::TimeoutError
          raise NoServerError, "the server at #{@address} has not responded for #{timeout} s. #{SILENT}" \
                               "#{". The server will run the command when it continues" if method == "POST"}"
        rescue SystemCallError => e
          raise broken(e)
        ensure
          socket&.close
        end

        def broken(error)
          NoServerError.new("lost the connection to the server at #{@address} (#{error.class}). Run the command again")
        end

        def request(socket, method, path, content = "")
          socket.write("#{method} #{path} HTTP/1.1\r\nhost: heddle\r\nconnection: close\r\n" \
                       "#{"content-length: #{content.bytesize}\r\n" if method == "POST"}\r\n", content)
        rescue SystemCallError => e
          raise broken(e)
        end

        def answer(socket)
          head, body = socket.read.split("\r\n\r\n", 2)
          raise NoServerError, "the server at #{@address} has closed the connection without a response" unless body

          status = head[%r{\AHTTP/1\.\d (\d+)}, 1].to_i
          raise status == 413 ? TooLargeError : DeclinedError, body.chomp unless status < 300

          body.force_encoding(Encoding::UTF_8)
        end

        def connect
          socket = @address.path ? connect_to_owner : TCPSocket.new(@address.host, @address.port)
          socket.timeout = @timeout
          socket
        rescue Errno::ENOENT, Errno::ECONNREFUSED
          raise NotRunningError, "no server listens on #{@address}. Run the command in the folder where the server " \
                                 "was started, as the user who runs it, or set its control socket: --control unix:path"
        rescue Errno::EACCES
          raise NoServerError, "#{@address} belongs to another user: run the command as the user who runs the server"
        rescue SystemCallError, SocketError, ArgumentError => e
          raise NoServerError, "can't connect to the server at #{@address}: #{e.message}"
        end

        # In a folder that all users may write to, another user may have created the socket first. So the peer's user is
        # checked. If the socket's queue is full, Ruby returns a socket that is not connected, and the peer's user is
        # NO_PEER.
        def connect_to_owner
          socket = UNIXSocket.new(@address.path)
          uid, = socket.getpeereid
          return socket if uid != NO_PEER && @address.trusts?(uid)

          socket.close
          raise NoServerError, "the server at #{@address} accepts no connections. #{SILENT}" if uid == NO_PEER

          raise NoServerError, "a process of another user (uid #{uid}) listens on #{@address}, but that user " \
                               "does not own the socket's folder, so the process is not trusted. If it is your " \
                               "server, run the command as that user"
        end
      end
    end
  end
end
