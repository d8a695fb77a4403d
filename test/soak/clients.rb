# frozen_string_literal: true

require "digest"
require "securerandom"
require "socket"
require "support/event_stream_client"
require "support/steady_client"
require "support/web_socket_client"

module SoakTest
  # Clients of the server, each in a thread, each asks for one thing at its pace. What each was answered is counted.
  class Clients
    TIMEOUT = SteadyClient::TIMEOUT
    UPLOAD = 300_000
    STREAMS = 4
    WEB_SOCKETS = 8

    # @!attribute worker [Integer, nil] process that has answered on the connection before; nil: none has
    # @!attribute error [String] how the response failed, or its status
    Failure = Data.define(:time, :kind, :worker, :error)

    # @return [Array<Failure>] requests without a response
    # @return [Array<Failure>] responses that are wrong, or of a status above 499
    attr_reader :lost, :errors
    # @return [Hash{String => Integer}] of each kind
    attr_reader :answered
    # @return [Array<String>] of notes and jobs that the server has confirmed
    attr_reader :notes, :jobs

    # @return [Float] factor of all pauses
    attr_writer :pace

    # @param port [Integer]
    # @param pace [Float]
    # @param clock [Proc] tells the time of a failure
    def initialize(port, pace:, clock:)
      @port = port
      @pace = pace
      @clock = clock
      @lock = Mutex.new
      @lost = []
      @errors = []
      @answered = Hash.new(0)
      @notes = []
      @jobs = []
      @streams = []
      @running = true
      @opened = Thread::Queue.new
      @stream_threads = Array.new(STREAMS) { Thread.new { stream } }
      STREAMS.times { @opened.pop(timeout: TIMEOUT) }
      @threads = requests + Array.new(WEB_SOCKETS) { Thread.new { web_socket } }
    end

    # @return [Integer] confirmed notes that some stream has not had
    def unseen
      deadline = now + TIMEOUT
      loop do
        missing = @streams.sum { |seen| @notes.count { |token| !seen.key?(token) } }
        return missing if missing.zero? || now > deadline

        sleep 0.1
      end
    end

    # Stops all; the block runs when no request does, and the streams still do.
    def stop
      @running = false
      @threads.each { |thread| thread.join(2 * TIMEOUT) or raise "a client has no response yet" }
      yield
    ensure
      @stream_threads.each(&:kill)
    end

    private

    # Pauses in seconds at pace 1.
    def requests
      [repeat("page", 0.5) { |client| client.call("GET", "/page") },
       repeat("page", 0.5) { |client| client.call("GET", "/page") },
       repeat("page, new connection", 1, kept: false) { |client| client.call("GET", "/page") },
       repeat("note", 1) { |client| confirm(@notes, client, "/note", 201) },
       repeat("upload", 5) { |client| upload(client) },
       repeat("upstream", 2) { |client| check(client.call("GET", "/fetch"), "upstream") },
       repeat("job", 5) { |client| confirm(@jobs, client, "/job", 202) },
       repeat("compute", 5) { |client| client.call("GET", "/compute") }]
    end

    def repeat(kind, pause, kept: true)
      Thread.new do
        client = SteadyClient.new("127.0.0.1", @port, kept:)
        while @running
          ask(kind, client) { yield client }
          rest(pause)
        end
        client.close
      end
    end

    def ask(kind, client)
      response = yield
      response.status < 500 ? count(kind) : fail(@errors, kind, client.worker, response.status.to_s)
    rescue SystemCallError, IOError => e
      fail(@lost, kind, client.worker, "#{e.class}: #{e.message}")
    end

    # A token that the server has confirmed must not be lost afterwards.
    def confirm(list, client, path, status)
      token = SecureRandom.hex(8)
      client.call("POST", path, "token=#{token}").tap do |response|
        @lock.synchronize { list << token } if response.status == status
      end
    end

    def upload(client)
      content = Random.bytes(UPLOAD)
      body = "--soak\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n" \
             "Content-Type: application/octet-stream\r\n\r\n".b << content << "\r\n--soak--\r\n".b
      check(client.call("POST", "/upload", body, "multipart/form-data; boundary=soak"), Digest::SHA256.hexdigest(content))
    end

    # A body that is not the expected one counts as an error of the server.
    def check(response, expected)
      response.status != 200 || response.body == expected ? response : response.with(status: 599)
    end

    # A socket that is closed properly has lost nothing.
    def web_socket
      while @running
        begin
          client = WebSocketClient.new(connect, "/echo")
          client.status == 101 ? talk(client) : fail(@errors, "WebSocket", nil, client.status.to_s)
        rescue SystemCallError, IOError, RuntimeError => e
          fail(@lost, "WebSocket", nil, "#{e.class}: #{e.message}")
        end
        client&.io&.close
        rest(1)
      end
    end

    def connect = TCPSocket.new("127.0.0.1", @port).tap { |socket| socket.timeout = TIMEOUT }

    def talk(client)
      while @running
        client.text(text = SecureRandom.hex(100))
        answer = frame(client)
        return count("WebSocket closed") if answer.opcode == 8

        answer.payload == text ? count("WebSocket") : fail(@errors, "WebSocket", nil, "another message")
        pinged = client.io.wait_readable(5 * @pace * (0.5 + rand))
        return count("WebSocket closed") if pinged && frame(client).opcode == 8
      end
      client.close
    end

    # @return [WebSocketClient::Frame] a message, a ping that was answered, or the end
    def frame(client)
      frame = client.read or raise EOFError, "closed without an answer"
      return frame unless frame.opcode == 9

      client.write(10, frame.payload)
      client.io.wait_readable(0) ? frame(client) : frame
    end

    def stream
      seen = {}
      @lock.synchronize { @streams << seen }
      position = nil
      loop do
        begin
          socket = TCPSocket.new("127.0.0.1", @port)
          events = EventStreamClient.new(socket, "/events", ("Last-Event-ID: #{position}\r\n" if position).to_s)
          @opened << true
          while (event = events.event)
            position = event["id"] || position
            seen[event["data"]] = true if event["data"]
            count(event["event"] == "reset" ? "stream reset" : "event") if event["data"]
          end
        rescue SystemCallError, IOError, NoMethodError
          nil # the worker was killed
        end
        count("stream opened again")
        socket&.close
        rest(0.2)
      end
    end

    def count(kind) = @lock.synchronize { @answered[kind] += 1 }

    def fail(list, kind, worker, error)
      @lock.synchronize { list << Failure.new(time: @clock.call, kind:, worker:, error:) }
    end

    def rest(pause) = sleep(pause * @pace * (0.5 + rand))

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
