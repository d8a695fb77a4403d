# frozen_string_literal: true

require "test_helper"
require "json"
require "cli/demo/browser"
require "support/web_socket_client"
require_relative "served_example"

# examples/board on two workers, in two tabs of a real browser.
class BoardExampleTest < Minitest::Test
  CONNECTED = "document.querySelector('[data-live-state=connected]')"
  CELL = "[data-live-x='3'][data-live-y='4']"
  OPEN = "document.querySelectorAll('.open').length"
  FLAGS = "document.querySelectorAll('.flag').length"

  def setup
    @served = ServedExample.new("board", environment: { "HEDDLE_WORKERS" => "2", "BOARD_SECRET" => "s" * 32 })
  end

  def teardown
    @browser&.start_over
    @client&.io&.close
    @served.stop
  end

  def start_browser = @browser = Browser.shared(*%w[chromium chromedriver].map { |name| need_program(name) })

  # @return [String] a tab with the board
  def open_tab
    tab = @browser ? @browser.open_tab : start_browser.tab
    @browser.visit(@served.uri.to_s)
    await(CONNECTED)
    tab
  end

  def await(expression)
    return pass if @browser.wait_for(expression, seconds: 60)

    flunk [expression, *@browser.console, @served.output].join("\n")
  end

  def count(expression) = @browser.run("return #{expression}")

  def test_two_tabs_play_on_one_board_and_each_has_its_own_switch
    first = open_tab
    second = open_tab
    @browser.click(CELL)
    await("#{OPEN} > 0")
    @browser.click("#switch")
    await("document.querySelector('#switch').innerText == 'clicks set flags'")
    @browser.run("document.querySelector('.closed').focus()")
    @browser.run("document.activeElement.click()")
    await("#{FLAGS} == 1")
    open = count(OPEN) # all cells of the first click: a page may be rendered while they are being opened

    @browser.switch_to(first)
    await("#{OPEN} == #{open} && #{FLAGS} == 1")
    assert_equal "clicks open", @browser.text("#switch")
    assert_equal "25", @browser.text("#left")
    @browser.click("#restart")
    await("#{OPEN} == 0")
    @browser.switch_to(second)
    await("#{OPEN} == 0 && #{FLAGS} == 0")
    assert_equal "clicks set flags", @browser.text("#switch")
    assert_empty(@browser.console.grep_v(/favicon/), "the policy was broken, or something else failed")
  end

  # Its clicks come to any of the two workers.
  def test_a_browser_without_websockets_plays_too
    start_browser.devtools("Page.addScriptToEvaluateOnNewDocument", source: "delete window.WebSocket")
    @browser.visit(@served.uri.to_s)
    await(CONNECTED)
    @browser.click(CELL)
    await("#{OPEN} > 0")
    @browser.click("#switch")
    await("document.querySelector('#switch').innerText == 'clicks set flags'")
    @browser.run("document.querySelector('.closed').click()")
    await("#{FLAGS} == 1")

    assert_empty(@browser.console.grep_v(/favicon/), "the policy was broken, or something else failed")
  end

  def test_open_tabs_and_the_board_outlive_a_reload
    open_tab
    @browser.click(CELL)
    await("#{OPEN} > 0")
    open = count(OPEN)
    @browser.run("window.mark = true")
    state = "document.querySelector('[data-live]').dataset.liveState"
    @browser.run("new MutationObserver(() => { if (#{state} == 'disconnected') window.left = true })" \
                 ".observe(document.querySelector('[data-live]'), { attributes: true })")
    Process.kill("HUP", @served.pid)
    await("window.left && #{CONNECTED}")

    assert_equal [true, open], [@browser.run("return window.mark"), count(OPEN)], "the page was not loaded anew"
    # Not with the mouse: the first patch of the new connection may come between its button's down and up.
    @browser.run("document.querySelector('#restart').click()")
    await("#{OPEN} == 0")
  end

  def test_a_move_sends_little_of_the_board
    page = @served.get("/").body
    token = page[/data-live="([^"]+)"/, 1]
    @client = WebSocketClient.new(TCPSocket.new(@served.uri.host, @served.uri.port), "/live")
    @client.text({ token: }.to_json)
    whole = @client.message
    @client.text("1")
    @client.text({ event: "switch", values: {} }.to_json)
    @client.message
    @client.text("1")
    @client.text({ event: "press", values: { x: "0", y: "0" } }.to_json)
    patch = @client.message

    assert_includes patch, "flag"
    assert_operator patch.bytesize, :<=, whole.bytesize / 20
    assert_operator patch.bytesize, :<=, page.bytesize / 20
  end
end
