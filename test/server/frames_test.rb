# frozen_string_literal: true

# test: each version

require "test_helper"
require "heddle/live"
require "heddle/net/dns"
require "server/web_socket_helpers"
require "support/event_stream_client"
require "support/h2_exchanges"
require "support/h2_web_socket_client"
require "support/served_process"
require "tmpdir"

# Wherever Heddle calls an application, every frame of the backtrace has a file and a line, the lowest one included:
# tools such as Rails' error page use them without asking.
class FramesTest < Minitest::Test
  include WebSocketHelpers
  include H2Exchanges

  # Returns what the frames below it lack; "complete" when nothing.
  module Frames
    def self.look
      raised = begin
        raise "for its backtrace"
      rescue RuntimeError => e
        e.backtrace_locations
      end
      lacking = [*caller_locations(0), *raised].reject { |frame| frame.path && frame.lineno.positive? }
      lacking.empty? ? "complete" : lacking.map(&:label).join(",")
    end
  end

  # Calls its socket's client with what each callback sees.
  class Handler
    attr_reader :last

    def initialize = @last = Thread::Queue.new
    def on_open(client) = client.write("open #{Frames.look}")
    def on_message(client, _message) = client.write("message #{Frames.look}")
    def on_close(_client) = last << Frames.look
  end

  # What a page sees when it is made, by an event, and by its own timer.
  class Page < Heddle::Live::Page
    template text: "<p><%= @made %> <%= @seen %></p>"
    event :look
    event :later

    def mount(_params) = @made = Frames.look
    def look = @seen = "event #{Frames.look}"
    def later = every(0.001) { @seen = "timer #{Frames.look}" }
  end

  # Yields to its block what #each sees.
  EACH = Object.new.tap { |body| def body.each = yield Frames.look }
  TASKS = {
    "async" => -> { Heddle.async { Frames.look }.value },
    "map" => -> { Heddle.map([1]) { Frames.look }.first },
    "scope" => -> { Heddle.scope { |scope| scope.async { Frames.look }.value } },
    "timeout" => -> { Heddle.timeout(60) { Frames.look } },
    "schedule" => -> { Thread::Queue.new.then { |seen| Fiber.schedule { seen << Frames.look } && seen.pop } },
    "every" => lambda do
      seen = Thread::Queue.new
      task = Heddle.async { Heddle.every(0.001) { seen << Frames.look } }
      seen.pop.tap { task.cancel }
    end
  }.freeze
  FINISHED = Thread::Queue.new
  APP = lambda do |env|
    case env["PATH_INFO"]
    when "/each" then [200, {}, EACH]
    when "/callable" then [200, {}, ->(stream) { stream.write(Frames.look) && stream.close }]
    when "/hijack" then [200, { "rack.hijack" => ->(io) { io.write(Frames.look) && io.close } }, []]
    when "/finished"
      env["rack.response_finished"] << ->(*) { FINISHED << Frames.look }
      (env["rack.after_reply"] ||= []) << -> { FINISHED << Frames.look }
      [200, {}, []]
    when %r{\A/tasks/} then [200, {}, [TASKS.fetch(env["PATH_INFO"][7..]).call]]
    else [200, {}, [Frames.look]]
    end
  end
  MODES = [{ mode: :fiber }, { mode: :fiber, threads: 2 }, { mode: :thread, threads: 2 }, { mode: :single }].freeze
  PATHS = %w[/ /each /callable /hijack].freeze
  private_constant :Frames, :Handler, :Page, :EACH, :TASKS, :FINISHED, :APP, :MODES, :PATHS

  MODES.each do |options|
    name = options.values.join("_")

    define_method("test_requests_and_bodies_have_complete_frames_in_mode_#{name}") do
      serving(APP, lint: false, **options) do
        PATHS.each do |path|
          assert_equal "complete", get(path).body, path
          assert_equal({ 1 => "complete" }, exchange_together(connect, 1, path:), "#{path} over HTTP/2")
        end
        assert_equal "200", get("/finished").code
        assert_equal %w[complete complete], Array.new(2) { FINISHED.pop(timeout: PATIENCE) }
      end
    end

    define_method("test_callbacks_of_web_sockets_and_event_streams_have_complete_frames_in_mode_#{name}") do
      handler = Handler.new
      app = ->(env) { [200, {}, []].tap { env["rack.upgrade"] = handler } }
      serving(app, lint: false, http2_websockets: true, **options) do
        [dial, H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/"))].each do |client|
          client.text("?")

          assert_equal ["open complete", "message complete"], [client.message, client.message]
          client.close
          client.io.close
        end
        events = EventStreamClient.new(connect, "/", "Accept: text/event-stream\r\n")

        assert_equal "open complete", events.event["data"]
        events.close
        assert_equal %w[complete] * 3, Array.new(3) { handler.last.pop(timeout: PATIENCE) }
      end
    end
  end

  [{}, { threads: 2 }].each do |options|
    define_method("test_tasks_and_timers_have_complete_frames_in_mode_#{["fiber", *options.values].join("_")}") do
      serving(APP, lint: false, mode: :fiber, **options) do
        TASKS.each_key { |name| assert_equal "complete", get("/tasks/#{name}").body, name }
      end
    end
  end

  def test_requests_and_tasks_have_complete_frames_in_mode_ractor
    app = <<~RUBY
      module Frames
        def self.look = caller_locations(0).reject { |frame| frame.path && frame.lineno.positive? }.map(&:label).inspect
      end
      class Body
        def each = yield Frames.look
      end
      class App
        def call(env)
          case env["PATH_INFO"]
          when "/each" then [200, {}, Body.new]
          when "/callable" then [200, {}, ->(stream) { stream.write(Frames.look) && stream.close }]
          when "/async" then [200, {}, [Heddle.async { Frames.look }.value]]
          else [200, {}, [Frames.look]]
          end
        end
      end
      run App.new
    RUBY
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), app)
      command = [*ServedProcess::HEDDLE, "serve", "--mode", "ractor", "-b", "127.0.0.1:0", "-e", "test", "-t", "2"]
      served = ServedProcess.new(command, folder:)

      %w[/ /each /callable /async].each { |path| assert_equal "[]", served.get(path).body, path }
    ensure
      served&.stop
    end
  end

  def test_hooks_have_complete_frames
    names = Heddle::Server::Hooks::NAMES.keys - [:on_restart]
    seen = names.map do |name|
      "#{name} { File.write('seen', [:#{name}, caller_locations(0).map(&:path)].inspect.concat(\"\\n\"), mode: 'a') }"
    end
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), "run ->(_env) { [200, {}, []] }\n")
      File.write(File.join(folder, "heddle.rb"), seen.join("\n"))
      command = [*ServedProcess::HEDDLE, "serve", "-C", "heddle.rb", "-b", "127.0.0.1:0", "-e", "test", "-w", "2"]
      served = ServedProcess.new(command, folder:)
      served.get("/")
      served.stop
      lines = File.readlines(File.join(folder, "seen"))

      assert_equal names, names & lines.map { |line| line[/\w+/].to_sym }
      assert_empty lines.grep(/nil/)
    end
  end

  def test_pages_events_and_timers_of_live_have_complete_frames
    serving(Heddle::Live.new(Page), lint: false) do
      body = get("/").body

      assert_includes body, "<p>complete "
      client = dial("/live")
      client.text({ token: body[/data-live="([^"]+)"/, 1] }.to_json)
      client.message
      client.text("1")
      client.text({ event: "look", values: {} }.to_json)

      assert_includes client.message, "event complete"
      client.text("1")
      client.text({ event: "later", values: {} }.to_json)

      assert_includes client.message, "timer complete"
    end
  end

  def test_tasks_of_programs_without_a_server_have_complete_frames
    found = Heddle.run { TASKS.transform_values(&:call) }

    assert_equal TASKS.transform_values { "complete" }, found
  end

  def test_queries_of_dns_have_complete_frames
    answers = Heddle.run do
      found = nil
      server = Heddle::Net::DNS::Server.new("127.0.0.1:0") { |query| query.answer(Frames.look) }
      server.run do
        found = Heddle::Net::DNS::Client.new(server.addresses.first).records("a.test", :TXT)
        server.close
      end
      found
    end

    assert_equal ["complete"], answers.flat_map { |record| record.data.strings }
  end
end
