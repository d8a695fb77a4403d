# frozen_string_literal: true

# test: long

require "test_helper"
require "server/server_helpers"
require "cli/demo/browser"
require "heddle/live"

# What the script of live pages does in a real browser, under the page's own policy.
class LiveBrowserTest < Minitest::Test
  include ServerHelpers

  # A list whose entries can be turned round, a form, fields, and a part that is left alone.
  class Notes < Heddle::Live::Page
    class << self
      attr_accessor :mounted
    end

    template text: <<~ERB
      <form data-live-submit="add" data-live-reset><input name="text" id="text"><button id="send">Add</button></form>
      <ul data-live-click="turn"><% @list.each do |text| %><li data-key="<%= text %>"><%= text %></li><% end %></ul>
      <input id="draft" data-live-input="draft"><p id="seen"><%= @draft %></p>
      <input id="box" type="checkbox" data-live-change="check"><p id="checked"><%= @checked %></p>
      <input id="keys" data-live-keydown="key"><p id="key"><%= @key %></p>
      <a id="link" href="/else" data-live-ignore data-live-click="pick" data-live-row-id="7">pick</a>
      <p id="picked"><%= @picked %></p>
      <div id="own" data-live-ignore></div>
    ERB
    event :add, text: String
    event :turn
    event :draft, value: String
    event :check, value: String
    event :key, key: String
    event :pick, row_id: Integer

    def mount(params)
      self.class.mounted&.push(params)
      @list = (params["list"] || "a,b,c").split(",")
    end

    def add(text:) = @list << text
    def turn = @list.reverse!
    def draft(value:) = @draft = value
    def check(value:) = @checked = value
    def key(key:) = @key = key
    def pick(row_id:) = @picked = row_id + 1
  end

  # @param script [String, nil] runs before those of the page
  # @param expected [Regexp] in the console
  # @yieldparam env [Hash] of a request: whether it is refused
  def visit(query = "", refuses: ->(_env) {}, script: nil, expected: /favicon/)
    @live = Heddle::Live.new(Notes)
    serving(->(env) { refuses.call(env) ? [403, {}, []] : @live.call(env) }, lint: false) do
      @browser = Browser.shared(need_program("chromium"), need_program("chromedriver"))
      @browser.devtools("Page.addScriptToEvaluateOnNewDocument", source: script) if script
      @browser.visit("http://127.0.0.1:#{port}/#{query}")
      await_connected
      yield
      assert_empty(@browser.console.grep_v(expected), "the policy was broken, or something else failed")
    ensure
      @browser&.start_over
    end
  end

  def await(expression)
    return pass if @browser.wait_for(expression, seconds: 30)

    flunk [expression, *@browser.console].join("\n")
  end

  def await_connected = await("document.querySelector('[data-live-state=connected]')")

  def await_text(id, text) = await("document.getElementById('#{id}').innerText === #{text.to_json}")

  def list = @browser.run("return [...document.querySelectorAll('li')].map((one) => one.innerText).join('')")

  def await_list(text)
    await("[...document.querySelectorAll('li')].map((one) => one.innerText).join('') === '#{text}'")
  end

  # Presses them in this field.
  def type(id, *keys)
    @browser.run("document.getElementById(arguments[0]).focus()", id)
    @browser.press(*keys)
  end

  def value(id) = @browser.run("return document.getElementById(arguments[0]).value", id)

  def test_each_attribute_sends_its_event_with_its_values
    visit do
      type("text", "d", Browser::ENTER)
      await_list("abcd")
      assert_equal "", value("text"), "data-live-reset"
      type("draft", "h", "i")
      await_text("seen", "hi")
      @browser.click("#box")
      await_text("checked", "true")
      type("keys", "x")
      await_text("key", "x")
      @browser.click("#link")
      await_text("picked", "8")

      assert_match(%r{127\.0\.0\.1:\d+/\z}, @browser.run("return location.href"), "the link is not followed")
    end
  end

  # Its events, and its state after the stream has broken.
  def check_page_without_sockets
    type("text", "d", Browser::ENTER)
    await_list("abcd")
    @browser.click("ul")
    await_list("dcba")
    type("draft", "h", "i")
    await_text("seen", "hi")
    Notes.mounted = []
    watch_state
    ObjectSpace.each_object(Heddle::WebSocket::FallbackSocket).each(&:close)
    await("window.left")
    await_connected
    @browser.click("ul")
    await_list("abcd")

    assert_empty Notes.mounted, "it goes on with its state"
    assert_empty(ObjectSpace.each_object(Heddle::WebSocket::ServerSocket).select(&:open?))
  ensure
    Notes.mounted = nil
  end

  def test_a_browser_without_websockets_has_an_event_stream
    visit(script: "delete window.WebSocket") { check_page_without_sockets }
  end

  def test_where_a_proxy_refuses_websockets_there_is_an_event_stream
    visit(refuses: ->(env) { env["rack.upgrade?"] == :websocket }, expected: /favicon|WebSocket connection to/) do
      check_page_without_sockets
    end
  end

  def test_entries_with_a_key_are_moved_and_what_is_typed_or_left_alone_stays
    visit do
      @browser.run("document.querySelector('li').mark = 'first'; document.getElementById('own').innerText = 'mine'")
      type("draft", "h")
      await_text("seen", "h")
      @browser.click("ul")
      await_list("cba")

      assert_equal "first", @browser.run("return document.querySelector('li:last-child').mark"), "the same element"
      assert_equal %w[h mine], [value("draft"), @browser.text("#own")]
    end
  end

  def test_a_reconnected_page_keeps_its_state
    Notes.mounted = []
    visit("?list=x,y") do
      @browser.click("ul")
      await_list("yx")
      @browser.run("window.mark = true; document.getElementById('draft').value = 'typed'")
      cut_off
      await_connected
      @browser.click("ul")
      await_list("xy")

      assert_equal [true, "typed", 2], [@browser.run("return window.mark"), value("draft"), Notes.mounted.size]
    end
  ensure
    Notes.mounted = nil
  end

  # Its worker is another one, say.
  def test_a_page_whose_state_is_gone_is_mounted_anew_with_its_parameters_and_keeps_what_was_typed
    Notes.mounted = []
    visit("?list=x,y") do
      @browser.click("ul")
      await_list("yx")
      @browser.run("document.getElementById('draft').value = 'typed'")
      sessions.clear
      cut_off
      await_list("xy")
      await_connected

      assert_equal ["typed", [{ "list" => "x,y" }] * 3], [value("draft"), Notes.mounted]
    end
  ensure
    Notes.mounted = nil
  end

  def sessions = @live.instance_variable_get(:@sessions)

  # The connection breaks without a close frame. The browser has noticed when this returns.
  def cut_off
    watch_state
    ObjectSpace.each_object(Heddle::WebSocket::ServerSocket).select(&:open?).each { |client| client.close(4000) }
    await("window.left")
  end

  # `window.left` says from then on whether the page was ever disconnected.
  def watch_state
    @browser.run(<<~JS)
      new MutationObserver(() => { window.left ||= document.querySelector("[data-live-state=disconnected]") !== null })
        .observe(document.querySelector("[data-live]"), { attributes: true })
    JS
  end
end
