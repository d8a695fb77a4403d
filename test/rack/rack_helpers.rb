# frozen_string_literal: true

require "heddle/http"
require "heddle/rack"
require "rack/lint"
require "stringio"
require_relative "../http/memory_connection"

# Runs applications, with Rack::Lint around them, on connections in memory.
module RackHelpers
  GET = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"

  # Keeps what the exchange reports.
  class MemoryLog
    attr_reader :failures, :complaints, :gone

    def initialize
      @failures = []
      @complaints = []
      @gone = []
    end

    def failure(_exchange, error) = @failures << error
    def complaint(_exchange, text) = @complaints << text
    def client_gone(_exchange, error) = @gone << error
  end

  attr_reader :log, :errors, :connection

  # @return [String] all that the client receives
  def serve(app, *pieces, open: true, lint: true, **limits)
    pieces << GET if pieces.empty?
    @connection = MemoryConnection.new(*pieces, open:)
    serve_connection(app, lint:, **limits)
    @connection.output
  end

  def serve_connection(app, lint: true, **limits)
    app = Rack::Lint.new(app) if lint
    @log = MemoryLog.new
    @errors = StringIO.new
    engine = Heddle::HTTP::H1::Engine.new(Heddle::HTTP::Configuration.new(**limits))
    builder = Heddle::Rack::EnvBuilder.new(errors: @errors)
    server = Heddle::HTTP::H1::ServerConnection.new(@connection, engine)
    server.serve { |head, body| Heddle::Rack::Exchange.new(server, head, body, @log).run(app, builder) }
  end

  # The env that an application gets.
  def env_of(*pieces, **)
    seen = nil
    serve(->(env) { (seen = env) && [204, {}, []] }, *pieces, **)

    assert_empty log.failures.map(&:message)
    seen
  end

  def answer(status = 200, headers = {}, body = [])
    ->(_env) { [status, headers.dup, body] }
  end

  # Splits one answer into status line, headers and content.
  def parts(output)
    head, content = output.split("\r\n\r\n", 2)
    status, *lines = head.split("\r\n")
    [status, lines.to_h { |line| line.split(": ", 2) }, content]
  end

  # Takes the chunked coding off.
  def unchunk(content)
    decoder = Heddle::HTTP::H1::ChunkedDecoder.new(Heddle::HTTP::Configuration.new)
    output = "".b
    rest = decoder.decode(content.b, 0, output)

    assert_predicate decoder, :done?, "the last chunk is missing: #{content.inspect}"
    [output, content.byteslice(rest, content.bytesize)]
  end
end
