# frozen_string_literal: true

# test: each version

require "test_helper"
require "support/event_stream_client"
require "support/served_process"
require "support/web_socket_client"
require "tmpdir"

# `heddle serve` in development shows what `rackup` shows: a page for exceptions, and violations of the Rack
# specification.
class DevelopmentChecksTest < Minitest::Test
  APP = <<~RUBY
    require "heddle"

    class Echo
      def on_message(client, message) = client.write(message)
    end

    run do |env|
      case env["PATH_INFO"]
      when "/raise" then raise "on purpose"
      when "/violation" then [200, { "X-Capital" => "a" }, []]
      when "/symbol" then [200, {}, [:symbol]]
      when "/stream" then [200, {}, ->(stream) { stream.write("streamed") && stream.close }]
      when "/input"
        env["rack.input"].rewind
        [200, {}, [env["rack.input"].gets("d", chomp: true), env["rack.input"].size.to_s]]
      when "/events" then Heddle::EventStream.response(:topic)
      when "/publish" then [200, {}, [Heddle::PubSub.publish(:topic, "published").to_s]]
      when "/socket"
        env["rack.upgrade"] = Echo.new
        [101, {}, []]
      else [200, { "content-type" => "text/plain" }, [env["rack.input"].read.to_s, ENV.fetch("RACK_ENV")]]
      end
    end
  RUBY
  private_constant :APP

  def serving(*options, **variables)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), APP)
      environment = { "RACK_ENV" => nil, "APP_ENV" => nil, "RAILS_ENV" => nil, "HEDDLE_ENVIRONMENT" => nil,
                      **variables.transform_keys(&:to_s) }
      command = [*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1:0", *options]
      served = ServedProcess.new(command, folder:, environment:)
      yield served
    ensure
      served&.stop
    end
  end

  def page(served, path) = Net::HTTP.get_response(served.at(path), { "accept" => "text/html" })

  def connect(served) = TCPSocket.new(served.uri.host, served.uri.port)

  [%w[--mode fiber], %w[--mode thread], %w[-w 2], %w[--mode single]].each do |options|
    define_method("test_exceptions_and_violations_have_a_page_in_development_#{options.join("_").delete("-")}") do
      serving(*options) do |served|
        failed = page(served, "/raise")

        assert_equal ["500", "text/html"], [failed.code, failed["content-type"]]
        assert_match(/<h1>RuntimeError at .*on purpose.*config\.ru/m, failed.body)
        assert_match(/Rack::Lint::LintError.*uppercase character in header name: X-Capital/m,
                     page(served, "/violation").body)
        assert_equal "500", page(served, "/symbol").code
        assert_equal "development", served.get("/").body
        assert_equal "bodydevelopment", Net::HTTP.post(served.at("/"), "body").body
        assert_equal "streamed", served.get("/stream").body
        assert_equal "bo4", Net::HTTP.post(served.at("/input"), "body").body, "as in production"
      end
    end
  end

  def test_sockets_and_event_streams_work_in_development
    serving do |served|
      socket = WebSocketClient.new(connect(served), "/socket")
      socket.text("hello")

      assert_equal "hello", socket.message
      events = EventStreamClient.new(connect(served), "/events", "Accept: text/event-stream\r\n")
      served.get("/publish")

      assert_equal "published", Array.new(2) { events.event }.last["data"], "after the position"
      events.close
      socket.close
    end
  end

  %w[none test production].each do |environment|
    define_method("test_nothing_is_checked_and_nothing_is_shown_in_environment_#{environment}") do
      serving("-e", environment, "-w", "1") do |served|
        failed = page(served, "/raise")

        assert_equal ["500", "text/plain; charset=utf-8"], [failed.code, failed["content-type"]]
        refute_includes failed.body, "on purpose"
        assert_equal "200", page(served, "/violation").code
      end
    end
  end

  def test_nothing_is_shown_where_rails_env_says_production_and_rack_env_development
    serving("-w", "1", RAILS_ENV: "production", RACK_ENV: "development") do |served|
      refute_includes page(served, "/raise").body, "on purpose"
    end
  end
end
