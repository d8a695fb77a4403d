# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Sends requests to a running server, over its control socket.
      class Client
        # Seconds that a response may take.
        TIMEOUT = 10
        # Seconds in addition to a recording's duration, for writing its file.
        RECORD_TIMEOUT = 60
        # The user of the peer, as Linux reports it, of a socket that is not connected.
        NO_PEER = 0xffff_ffff
        SILENT = "The process is suspended, or native code in it holds Ruby's lock: see its log, and `ps`"
        private_constant :TIMEOUT, :NO_PEER, :SILENT

        # Raised if no server answers at the address. The message says what to do.
        class NoServerError < OwnError; end

        # Raised if no server runs. The message has advice for a command line.
        class NotRunningError < NoServerError
        end

        # Raised if the server rejects a request.
        class DeclinedError < OwnError; end

        # Raised if the request is larger than the server allows.
        class TooLargeError < DeclinedError
        end

        # @param address [Address]
        # @param timeout [Numeric] seconds that a response may take
        def initialize(address, timeout: TIMEOUT)
          @address = address
          @timeout = timeout
        end

        # @return [Hash{Symbol => Object}] see {SingleProcess#report}
        # @raise [NoServerError]
        def status
          report = JSON.parse(ask("GET", "/status"), symbolize_names: true)
          unless report.is_a?(Hash) && report[:workers].is_a?(Array) && report[:workers].all?(Hash)
            raise NoServerError, foreign("its status names no workers")
          end

          report
        rescue JSON::ParserError
          raise NoServerError, foreign("its status is not JSON")
        end

        # @return [String]
        # @raise [NoServerError]
        def tasks = ask("GET", "/tasks")

        # @param name [String] of a command
        # @return [String] what happens now
        # @raise [NoServerError]
        # @raise [DeclinedError]
        def command(name) = ask("POST", "/#{name}").chomp

        # Records what all requests do, and waits for the files.
        # @param seconds [Float]
        # @return [String] where they are
        # @raise [NoServerError]
        # @raise [DeclinedError] when there is none; the message says why
        def record(seconds) = ask("POST", "/record?seconds=#{seconds}", timeout: seconds + RECORD_TIMEOUT).chomp

        # Sends a command, and waits until it is done.
        # @param name [String] of a command
        # @return [String] what has happened
        # @raise [NoServerError]
        # @raise [DeclinedError] when it could not be done; the message says why
        def complete(name)
          # The command has no time limit. This request has one, for a server that does not answer at all.
          begin
            ask("GET", "/health/live")
          rescue DeclinedError
            # The server is unhealthy, but answers.
          end
          ask("POST", "/#{name}?wait", timeout: nil).chomp
        end

        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position
        # @raise [NoServerError]
        # @raise [TooLargeError]
        # @raise [DeclinedError]
        def publish(topic, data)
          require "uri" # here, because most masters don't need it
          ask("POST", "/publish?#{URI.encode_www_form(topic:)}", data).chomp
        end

        # Stops the server with the block, and waits for its end.
        # @yield when the request to wait was sent, on a connection that the server accepts before the command's
        # @return [Boolean, nil] whether every request was answered; nil: the server ended without reporting it
        # @raise [NoServerError]
        # @raise [DeclinedError]
        def await_end
          socket = connect
          ask_for_end(socket)
          yield
          begin
            JSON.parse(answer(socket))["answered"]
          rescue NoServerError, DeclinedError, SystemCallError, JSON::ParserError
            nil
          end
        ensure
          socket&.close
        end

        # @return [Boolean] whether a server answers
        def running?
          socket = connect
          true
        rescue NoServerError
          false
        ensure
          socket&.close
        end

        private

        def foreign(reason) = "the process that answers at #{@address} is not a Heddle server: #{reason}"

        def ask(method, path, content = "", timeout: @timeout)
          socket = connect
          socket.timeout = timeout
          request(socket, method, path, content)
          answer(socket)
        rescue IO::TimeoutError
          raise NoServerError, "the server at #{@address} has not answered for #{timeout} s. #{SILENT}" \
                               "#{". It will follow the command when it runs again" if method == "POST"}"
        rescue SystemCallError => e
          raise broken(e)
        ensure
          socket&.close
        end

        def ask_for_end(socket)
          socket.timeout = nil
          request(socket, "GET", "/ended")
        rescue SystemCallError => e
          raise broken(e)
        end

        def broken(error)
          NoServerError.new("the connection to the server at #{@address} broke (#{error.class}): run the command again")
        end

        def request(socket, method, path, content = "")
          socket.write("#{method} #{path} HTTP/1.1\r\nhost: heddle\r\nconnection: close\r\n" \
                       "#{"content-length: #{content.bytesize}\r\n" if method == "POST"}\r\n", content)
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
          raise NotRunningError, "no server runs here: none answers at #{@address}. Run the command in the folder " \
                                 "where the server was started, as the user who runs it, or name its socket: " \
                                 "--control unix:path"
        rescue Errno::EACCES
          raise NoServerError, "#{@address} belongs to another user: run the command as the user who runs the server"
        rescue SystemCallError, SocketError, ArgumentError => e
          raise NoServerError, "can't ask the server at #{@address}: #{e.message}"
        end

        # In a folder that all users may write to, another user may have made the socket first. If the socket's queue of
        # connections is full, Ruby returns a socket that is not connected.
        def connect_to_owner
          socket = UNIXSocket.new(@address.path)
          uid, = socket.getpeereid
          raise NoServerError, "the server at #{@address} accepts no connections. #{SILENT}" if uid == NO_PEER
          return socket if @address.trusts?(uid)

          socket.close
          raise NoServerError, "a process of another user (uid #{uid}) answers at #{@address}, in a folder that is " \
                               "not that user's: the process is not trusted. If it is your server, run the command " \
                               "as that user"
        end
      end
    end
  end
end
