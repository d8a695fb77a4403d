# frozen_string_literal: true

require "heddle/rack"
require "rack/lint"
require "stringio"
require "heddle/server"
require_relative "../http/support/http_case"

# Runs applications, with Rack::Lint around them, over a pair of sockets.
module RackHelpers
  include Heddle::TestHelpers::HTTPCase

  GET = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
  HEAD = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"

  # Keeps what the handler reports.
  class MemoryLog
    attr_reader :failures, :violations, :gone

    def initialize
      @failures = []
      @violations = []
      @gone = []
    end

    def failure(_exchange, error) = @failures << error
    def violation(_exchange, text) = @violations << text
    def client_gone(_exchange, error) = @gone << error
  end

  attr_reader :log, :errors

  # @return [String] all that the client receives
  def serve(app, *pieces, open: true, lint: true, **)
    pieces << GET if pieces.empty?
    super(*pieces, open:, **, &handler(app, lint:))
  end

  # The same for a test that is the client itself.
  def converse_with(app, lint: true, **, &) = converse(handler(app, lint:), **, &)

  # @return [#call] what answers exchanges
  def handler(app, lint: true)
    app = Rack::Lint.new(app) if lint
    @log = MemoryLog.new
    @errors = StringIO.new
    made = nil
    lambda do |exchange|
      made ||= handler_under_test(app, Heddle::Rack::EnvBuilder.new(@errors, nil))
      made.call(exchange)
    end
  end

  # In a thread where this run is for that mode.
  def handler_under_test(app, env_builder)
    return Heddle::Rack::Handler.new(app, env_builder, @log, early_hints: :on) unless mode_under_test[:mode] == :thread

    Heddle::PubSub::History.open # as the server does
    @runners = Heddle::Server::RunnerThreads.new(2).tap(&:start)
    Heddle::Rack::ThreadHandler.new(app, env_builder, @log, @runners, early_hints: :on)
  end

  def teardown
    @runners&.stop
    super
  end

  # Lets the client read until it has got this.
  def await_output(text) = conversation.await { conversation.output.include?(text) }

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
    decoder = Heddle::HTTP::H1::ChunkedDecoder.new(Heddle::HTTP::Limits.new)
    output = "".b
    rest = decoder.decode(content.b, 0, output)

    assert_predicate decoder, :done?, "the last chunk is missing: #{content.inspect}"
    [output, content.byteslice(rest, content.bytesize)]
  end
end
