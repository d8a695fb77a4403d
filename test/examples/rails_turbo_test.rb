# frozen_string_literal: true

require "test_helper"
require "cli/demo/browser"
require "rails/support/cable_socket"
require "securerandom"
require_relative "served_example"

# examples/rails_turbo on two workers: Turbo's own client in a real browser, and clients that forge what they can.
class RailsTurboTest < Minitest::Test
  CONNECTED = "document.querySelector('turbo-cable-stream-source[connected]')"
  CHANNEL = "Turbo::StreamsChannel"

  def setup
    skip "needs the gems of examples/rails_turbo: bin/setup" unless ServedExample.gems?("rails_turbo")
    environment = { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64, "RAILS_LOG_LEVEL" => "warn",
                    "HEDDLE_WORKERS" => "2", "HEDDLE_ACCESS_LOG" => "off", "HEDDLE_BIND" => nil, "PORT" => nil }
    @served = ServedExample.shared("rails_turbo", bundled: true, environment:)
    @room = "r#{SecureRandom.hex(4)}"
  end

  def teardown
    @browser&.start_over
    @socket&.close
  end

  # @return [String] a tab that is connected to the room
  def open_tab(room = @room)
    programs = %w[chromium chromedriver].map { |name| need_program(name) }
    tab = @browser ? @browser.open_tab : (@browser = Browser.shared(*programs)).tab
    @browser.visit(@served.at("/rooms/#{room}").to_s)
    await(CONNECTED)
    tab
  end

  # Without the page's animation frames, which a tab behind another one does not get.
  def await(expression, value: true)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until (seen = @browser.run("const found = #{expression}; return found instanceof Element || found")) == value
      next sleep(0.02) if Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline

      flunk [expression, seen.inspect, *@browser.console, @served.output].join("\n")
    end
  end

  def say(name, text)
    { name:, text: }.each do |field, value|
      @browser.run("document.querySelector(`#form [name=${arguments[0]}]`).value = arguments[1]", field, value)
    end
    @browser.click("#form button")
  end

  LINES = "[...document.querySelectorAll('#messages li')].map((line) => line.innerText).join('|')"

  def test_a_message_appears_in_all_tabs_of_its_room_and_in_no_other
    other = open_tab("elsewhere")
    first = open_tab
    second = open_tab
    say("Ann", "<b>grüße</b>")
    await(LINES, value: "Ann: <b>grüße</b>")
    await("document.querySelector('[name=text]').value + document.querySelector('[name=name]').value", value: "Ann")

    @browser.switch_to(first)
    await(LINES, value: "Ann: <b>grüße</b>")
    say("Bo", "hello")
    await(LINES, value: "Ann: <b>grüße</b>|Bo: hello")
    @browser.switch_to(second)
    await(LINES, value: "Ann: <b>grüße</b>|Bo: hello")
    @browser.switch_to(other)
    say("Cy", "alone")
    await(LINES, value: "Cy: alone")
    assert_empty(@browser.console.grep_v(/favicon/), "the policy was broken, or something else failed")
  end

  def test_open_tabs_stay_connected_over_a_reload
    open_tab
    @browser.run(<<~JS)
      const source = document.querySelector("turbo-cable-stream-source")
      new MutationObserver(() => { if (!source.hasAttribute("connected")) window.left = true })
        .observe(source, { attributes: true })
    JS
    Process.kill("HUP", @served.pid)
    assert_match "reloaded", @served.await_output("reloaded")
    say("Ann", "still here")
    await(LINES, value: "Ann: still here")

    refute @browser.run("return window.left || false"), "the stream was disconnected"
  end

  def subscribe(signed_stream_name)
    @socket&.close
    @socket = CableSocket.new(@served.uri)
    @socket.read
    @socket.subscribe(CableSocket.identifier(CHANNEL, signed_stream_name:))["type"]
  end

  def test_a_room_can_be_subscribed_with_its_signed_name_only
    names = [@room, "secret"].map { |room| @served.get("/rooms/#{room}").body[/signed-stream-name="([^"]+)"/, 1] }
    mine, other = names.map { |name| name.split("--") }

    assert_equal "confirm_subscription", subscribe(names.first)
    ["room:secret", [other.first, mine.last].join("--"), "#{names.last}x"].each do |forged|
      assert_equal "reject_subscription", subscribe(forged), forged
    end
  end

  def test_a_form_of_another_site_says_nothing
    answer = Net::HTTP.post_form(@served.at("/rooms/#{@room}/messages"), "name" => "Eve", "text" => "forged")

    assert_equal "422", answer.code
  end
end
