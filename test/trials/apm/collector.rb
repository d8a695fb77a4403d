# frozen_string_literal: true

require "json"
require "openssl"
require "socket"
require "stringio"
require "zlib"
require "support/certificates"

module Trials
  # A collector on loopback, plain and by TLS, to which agents send what they have counted. It notes each request with
  # the process that has sent it.
  class Collector
    # @!attribute path [String]
    # @!attribute body [String] decompressed
    # @!attribute sender [String, nil] the name of the process, such as "heddle: worker 0"
    Note = Data.define(:path, :body, :sender)

    # What an agent wants to hear.
    ANSWERS = {
      "method=preconnect" => { return_value: { redirect_host: "127.0.0.1" } },
      "method=connect" => { return_value: {
        agent_run_id: "1", data_report_period: 1, agent_config: {},
        event_harvest_config: { report_period_ms: 1000, harvest_limits: {
          analytic_event_data: 1000, custom_event_data: 100, error_event_data: 100, span_event_data: 0,
          log_event_data: 0
        } }
      } },
      "/invocation/raw_method" => { return_value: nil },
      "/info" => { endpoints: ["/v0.4/traces"], client_drop_p0s: false, version: "7.60.0" },
      "/config/v1" => { version: "8.0.0" }
    }.freeze

    # @param folder [String] for the certificate
    def initialize(folder)
      @notes = []
      @lock = Mutex.new
      @certificate, key = TestCertificates.write(folder, "collector", TestCertificates.make("127.0.0.1"))
      context = OpenSSL::SSL::SSLContext.new
      context.add_certificate(OpenSSL::X509::Certificate.new(File.read(@certificate)), OpenSSL::PKey.read(File.read(key)))
      @plain = TCPServer.new("127.0.0.1", 0)
      @tls = TCPServer.new("127.0.0.1", 0)
      accept(@plain) { |socket| socket }
      accept(@tls) { |socket| OpenSSL::SSL::SSLSocket.new(socket, context).tap { |tls| (tls.sync_close = true) && tls.accept } }
    end

    # @return [String] path of the certificate that it shows
    attr_reader :certificate

    # @return [Integer, nil] the master, when it serves: senders are looked for among its children then, and before that
    #   among all processes
    attr_accessor :master

    # @return [Hash{Symbol => Integer}]
    def ports = { plain: @plain, tls: @tls }.transform_values { |server| server.local_address.ip_port }

    # @return [Array<Note>]
    def notes = @lock.synchronize { @notes.dup }

    private

    def accept(server)
      Thread.new do
        loop do
          socket = server.accept
          Thread.new { serve(yield(socket), Sender.of(socket, master)) }.report_on_exception = false
        end
      end
    end

    def serve(io, sender)
      while (line = io.gets)
        path = line.split[1]
        headers = {}
        while (field = io.gets.chomp) != ""
          name, value = field.split(/:\s*/, 2)
          headers[name.downcase] = value
        end
        note = ->(bytes) { @lock.synchronize { @notes << Note.new(path:, body: decoded(bytes, headers), sender:) } }
        read_body(io, headers, stream: path == "/send-metrics", &note)
        answer = JSON.generate(ANSWERS.find { |part, _| path.include?(part) }&.last || {})
        io.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: #{answer.bytesize}\r\n\r\n",
                 answer)
      end
    end

    # prometheus_exporter's client sends one endless body, in pieces that are complete by themselves.
    def read_body(io, headers, stream:, &note)
      return note.call(io.read(headers["content-length"].to_i)) unless headers["transfer-encoding"]

      body = +""
      while (size = io.gets.to_i(16)).positive?
        piece = io.read(size)
        stream ? note.call(piece) : body << piece
        io.gets
      end
      io.gets
      note.call(body) unless stream
    end

    def decoded(body, headers)
      body = case headers["content-encoding"]
             when "gzip" then Zlib.gunzip(body)
             when "deflate" then Zlib.inflate(body)
             else body.start_with?("\x1F\x8B".b) ? Zlib.gunzip(body) : body
             end
      headers["content-type"].to_s.include?("msgpack") ? unpacked(body) : body.dup.force_encoding("UTF-8")
    end

    # A trace a line, with the time that its span of the proxy took.
    def unpacked(body)
      require "msgpack"
      MessagePack.unpack(body).map do |trace|
        queue = trace.find { |span| span["name"] == "http.proxy.queue" }
        JSON.generate([*trace, { queue_time: queue&.fetch("duration") }])
      end.join("\n")
    end

    # Which process is at the other end of a connection on loopback.
    module Sender
      def self.of(socket, master)
        port = format("%04X", socket.remote_address.ip_port)
        row = File.readlines("/proc/net/tcp").map(&:split).find { |one| one[1].end_with?(":#{port}") && one[3] == "01" }
        inode = row[9]
        pids = master ? [master, *File.read("/proc/#{master}/task/#{master}/children").split].join(",") : "[0-9]*"
        Dir["/proc/{#{pids}}/fd/*"].each do |link|
          return File.read("/proc/#{link[/\d+/]}/cmdline").delete("\0") if File.readlink(link) == "socket:[#{inode}]"
        rescue SystemCallError
          next
        end
        nil
      end
    end
  end
end
