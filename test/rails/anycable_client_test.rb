# frozen_string_literal: true

require "test_helper"
require "cli/demo/browser"
require "support/bundle"
require "support/served_process"

# AnyCable's own client, @anycable/web, in a real browser.
class AnyCableClientTest < Minitest::Test
  MODULES = File.expand_path("../../vendor/node/node_modules", __dir__)
  GEMFILE = File.expand_path("bundles/rails_8_1/Gemfile", __dir__)
  PATIENCE = 60

  def setup
    skip "needs the gems of #{GEMFILE}: bin/setup" unless Bundle.installed?(GEMFILE)
    skip "needs @anycable/web, and npm (Debian package npm) to install it: bin/setup" unless
      File.directory?(File.join(MODULES, "@anycable/web"))
    command = [*ServedProcess::HEDDLE, "serve", "--bind", "127.0.0.1:0", "--workers", "2",
               File.expand_path("support/cable.ru", __dir__)]
    environment = { "RAILS_ENV" => "production", "CLIENT_MODULES" => MODULES }
    @served = ServedProcess.new(command, environment: Bundle.environment(GEMFILE).merge(environment), folder: __dir__)
    @browser = Browser.shared(need_program("chromium"), need_program("chromedriver"))
    @browser.visit(@served.at("/client").to_s)
  end

  def teardown
    @browser&.start_over
    @served&.stop
  end

  def broadcast(*numbers)
    numbers.each do |number|
      Net::HTTP.post_form(@served.at("/broadcast"), stream: "room:12", message: JSON.generate(number))
    end
  end

  def await(expression)
    return pass if @browser.wait_for(expression, seconds: 20)

    flunk [expression, @browser.run("return [window.log, window.states]").inspect, *@browser.console].join("\n")
  end

  def numbers = @browser.run("return window.log")

  def test_a_reconnecting_client_gets_missed_messages
    await("states.includes('connected')")
    broadcast(1, 2)
    await("log.length === 2")
    @browser.run("cable.transport.ws.close(4000)")
    await("states.includes('disconnected')")
    broadcast(3, 4, 5)
    @browser.run("comeBack()")
    await("log.length === 5")
    broadcast(6)
    await("log.length === 6")

    assert_equal (1..6).to_a, numbers
    assert_equal %w[connected disconnected connected], @browser.run("return states")
  end

  def test_over_a_reload_it_stays_connected
    await("states.includes('connected')")
    broadcast(1)
    Process.kill("HUP", @served.pid)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until @served.output.include?("reloaded")
      flunk @served.output if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.01
    end
    broadcast(2)
    await("log.length === 2")

    assert_equal [1, 2], numbers
    assert_equal %w[connected], @browser.run("return states")
  end
end
