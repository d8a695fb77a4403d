# frozen_string_literal: true

# test: long

require "test_helper"
require "securerandom"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"
require_relative "../cli/demo/browser"

# Action Cable of examples/rails_postgresql: its own event loop and web sockets, on connections that it takes over.
class RailsCableTest < Minitest::Test
  include Board

  def setup
    need_board
    require_relative "support/cable_client"
    @served = ServedExample.shared("rails_postgresql", bundled: true, environment: own_environment)
    @clients = []
  end

  # Two workers, which at a reload wait for connections long enough to be observed.
  def own_environment = environment("production").merge("HEDDLE_WORKERS" => "2", "HEDDLE_STOP_TIMEOUT" => "8")

  def teardown = @clients&.each(&:close)

  def client = CableClient.new(@served.uri).tap { |one| @clients << one }

  # With `adapter: heddle`, whatever worker a client has come to.
  def test_a_note_reaches_twenty_clients_of_all_workers
    clients = Array.new(20) { client.tap { |one| one.subscribe("NotesChannel") } }
    text = "seen #{SecureRandom.hex(4)}"
    answer = Net::HTTP.post_form(@served.at("/notes"), "text" => text)

    assert_equal "201", answer.code, @served.output
    clients.each do |one|
      assert_equal text, one.message { |message| message["identifier"] && message["message"] }.dig("message", "text")
    end
  end

  # Action Cable's own client, in a real browser.
  def test_a_note_that_is_left_in_one_tab_appears_in_the_other
    browser = Browser.new(need_program("chromium"), need_program("chromedriver"))
    browser.visit(@served.uri.to_s)
    first = browser.tab
    second = browser.open_tab
    browser.visit(@served.uri.to_s)
    await(browser, "document.body.dataset.cable", "connected")
    browser.switch_to(first)
    await(browser, "document.body.dataset.cable", "connected")
    text = "left #{SecureRandom.hex(4)}"
    browser.run("document.querySelector('input').value = arguments[0]", text)
    browser.click("button")

    await(browser, "document.querySelector('li')?.textContent", text)
    browser.switch_to(second)
    await(browser, "document.querySelector('li')?.textContent", text)

    assert_empty browser.console.grep_v(/favicon/)
  ensure
    browser&.close
  end

  # Without the page's animation frames, which a tab behind another one does not get.
  def await(browser, expression, value)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until (seen = browser.run("return #{expression}")) == value
      flunk "#{expression} stays #{seen.inspect}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.01
    end
  end

  def test_a_channel_asks_the_database
    one = client
    one.subscribe("NotesChannel")
    one.perform("NotesChannel", "count")

    assert_kind_of Integer, one.message { |message| message.dig("message", "count") }.dig("message", "count")
  end

  # Waits until the other workers serve.
  def reload
    Process.kill("HUP", @served.pid)
    sleep 0.02 until @served.output.include?("reloaded") || !@served.alive?
  end

  def test_at_a_reload_web_sockets_stay_open_until_stop_timeout_and_then_reconnect
    one = client
    one.subscribe("NotesChannel")
    reload
    one.perform("NotesChannel", "count")

    assert_kind_of Integer, one.message { |message| message["identifier"] && message["message"] }["message"]["count"]
    farewell = one.message { |message| message["type"] == "disconnect" }

    assert_equal ["server_restart", true], farewell.values_at("reason", "reconnect")
    one.await_close
  end

  def test_web_sockets_are_asked_to_reconnect_when_the_server_stops
    own = ServedExample.new("rails_postgresql", bundled: true, environment: own_environment)
    one = CableClient.new(own.uri).tap { |client| @clients << client }
    one.subscribe("NotesChannel")
    Process.kill("TERM", own.pid)

    assert_equal "server_restart", one.message { |message| message["type"] == "disconnect" }["reason"]
    one.await_close

    assert_equal 0, own.wait.exitstatus
  ensure
    own&.stop
  end

  def test_web_sockets_do_not_delay_requests_and_close_with_a_handshake
    one = client
    codes = []
    seconds = @served.all_at_once(10, "/slow?seconds=2") { |answer| codes << answer.code }

    assert_equal ["200"], codes.uniq
    assert_operator seconds, :<, 9, "one after the other they would take 10 on each of two workers"
    one.leave
  end
end
