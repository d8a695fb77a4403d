# frozen_string_literal: true

require "heddle/server"
require "rack/lint"
require "stringio"
require "support/constants"
require_relative "client"

module Conformance
  # A server in a thread of the test's own process, one for all cases of a file, on a port that the kernel chose.
  class Server
    # Seconds after which something is taken to hang, on a machine that is busy with other tests.
    PATIENCE = 60

    # @return [StringIO] what the server says went wrong
    attr_reader :errors
    # @return [Integer] how often the application was called
    attr_reader :calls

    # @param app [#call]
    # @param lint [Boolean] whether Rack::Lint stands around the application
    # @param selector [Symbol, nil]
    # @param options [Hash] of the server
    def initialize(app, lint: true, selector: nil, **options)
      @errors = StringIO.new
      @calls = 0
      configuration = Constants.configuration(bind: ["127.0.0.1:0"], access_log: false, selector:, **options)
      log = Heddle::Server::Log.new(output: StringIO.new, errors: @errors, access: false)
      @server = Heddle::Server.new(configuration, log:)
      @port = @server.open.first[/\d+\z/].to_i
      start(counted(lint ? Rack::Lint.new(app) : app))
    end

    # @return [Client]
    def connect = Client.new(@port, PATIENCE)

    # @return [Hash{Symbol => Integer}]
    def statistics = @server.statistics

    def stop
      @server.stop(now: true)
      @thread.join(PATIENCE) or raise "the server does not end"
    end

    private

    def counted(app)
      lambda do |env|
        @calls += 1
        app.call(env)
      end
    end

    def start(app)
      started = Thread::Queue.new
      @thread = Thread.new { @server.run(app) { started << true } }
      @thread.report_on_exception = false
      started.pop(timeout: PATIENCE) or @thread.value
    end
  end
end
