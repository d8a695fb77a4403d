# frozen_string_literal: true

require "test_helper"
require "open3"
require "cli/demo/browser"
require "support/web_socket_client"
require_relative "served_folder"

# `heddle top --web`, in two tabs of a real browser, and as those meet it that must not.
class TopWebTest < Minitest::Test
  include ServedFolder

  CONNECTED = "document.querySelector('[data-live-state=connected]')"
  TEXT = "document.querySelector('#overview').innerText"

  def setup
    super
    Dir.mkdir(file("tmp"))
    start("serve")
    @top = ServedProcess.new([*ServedProcess::HEDDLE, "top", "--web", "--interval", "0.1"], folder: @folder)
    @address = @top.output[%r{^http://127\.0\.0\.1:\d+/\?token=\S+}]
  end

  def teardown
    @browser&.close
    @client&.io&.close
    @top&.stop
    super
  end

  def await(expression)
    return pass if @browser.wait_for(expression, seconds: 20)

    flunk [expression, *@browser.console, @browser.run("return document.body.innerText"), @top.output].join("\n")
  end

  # @return [Net::HTTPResponse]
  def get(path, **fields)
    headers = fields.to_h { |name, value| [name.to_s, value] }
    Net::HTTP.start(@top.uri.host, @top.uri.port) { |http| http.get(path, headers) }
  end

  def token = URI(@address).request_uri

  def cookie(answer) = answer["set-cookie"][/\A[^;]+/]

  def test_two_tabs_show_what_the_server_does
    @browser = Browser.new(need_program("chromium"), need_program("chromedriver"))
    @browser.visit(@address)
    await("#{CONNECTED} && #{TEXT}.includes('no request runs')")
    first = @browser.tab
    second = @browser.open_tab
    @browser.visit(@top.uri.to_s)
    await(CONNECTED)
    socket = waiting_request
    await("#{TEXT}.includes('GET /wait')")
    @browser.click("#switch")
    await("#{TEXT}.includes('admission (waiting')")
    @browser.switch_to(first)
    await("#{TEXT}.includes('GET /wait') && #{TEXT}.includes('config.ru:4')")

    refute_includes @browser.text("#overview"), "admission (waiting", "the other tab has chosen that for itself"
    File.write(file("go"), "")
    await("#{TEXT}.includes('no request runs') && /answered [1-9]/.test(#{TEXT})")
    assert_equal "http://127.0.0.1:#{@top.uri.port}/", @browser.run("return location.href")
    assert_empty @browser.console.grep_v(/favicon/)
    @browser.switch_to(second)
    @served.stop
    await("document.querySelector('[role=alert]')?.innerText.includes('no server runs here')")
  ensure
    socket&.close
  end

  def test_a_browser_without_websockets_shows_it_too
    @browser = Browser.new(need_program("chromium"), need_program("chromedriver"))
    @browser.devtools("Page.addScriptToEvaluateOnNewDocument", source: "delete window.WebSocket")
    @browser.visit(@address)
    await("#{CONNECTED} && #{TEXT}.includes('no request runs')")
    socket = waiting_request
    await("#{TEXT}.includes('GET /wait')")
    @browser.click("#switch")
    await("#{TEXT}.includes('admission (waiting')")
    assert_empty @browser.console.grep_v(/favicon/)
  ensure
    File.write(file("go"), "")
    socket&.close
  end

  def test_the_token_is_good_once
    assert_equal "403", get("/").code
    assert_equal %w[403] * 3, ["x" * 43, "%", "%ff"].map { |wrong| get("/?token=#{wrong}").code }
    first = get(token)

    assert_equal %w[303 /], [first.code, first["location"]]
    assert_match(/; HttpOnly; SameSite=Strict\z/, first["set-cookie"])
    assert_equal "403", get(token).code
    assert_equal "200", get("/", cookie: cookie(first)).code
    assert_equal "403", get("/", cookie: "#{cookie(first).chop}!").code
  end

  def test_another_host_or_origin_is_refused_with_the_cookie_too
    good = cookie(get(token))
    port = @top.uri.port

    assert_equal "403", get("/", cookie: good, host: "evil.example:#{port}").code
    assert_equal "403", get("/", cookie: good, origin: "http://evil.example").code
    assert_equal "403", get("/top.css").code
    assert_equal "200", get("/", cookie: good, host: "localhost:#{port}").code
    [{ cookie: good, origin: "http://evil.example" }, { cookie: good, origin: "null" }, {}].each do |fields|
      @client&.io&.close
      @client = WebSocketClient.new(TCPSocket.new("127.0.0.1", port), "/live", host: "127.0.0.1:#{port}", **fields)

      assert_equal 403, @client.status
    end
  end

  def test_the_page_is_read_only_and_served_to_this_machine_only
    good = cookie(get(token))
    answers = %w[POST PUT DELETE].map do |method|
      Net::HTTP.start(@top.uri.host, @top.uri.port) { |http| http.send_request(method, "/", "", { "cookie" => good }) }
    end

    assert_equal %w[403 403 403], answers.map(&:code)
    assert_equal %w[403 403 403 403], foreign_messages(good)
    Socket.ip_address_list.select { |address| address.ipv4? && !address.ipv4_loopback? }.each do |other|
      assert_raises(Errno::ECONNREFUSED) { TCPSocket.new(other.ip_address, @top.uri.port) }
    end
  end

  # The last one comes from the page's origin, with its cookie, but without the key of a stream.
  # @return [Array<String>] the statuses
  def foreign_messages(cookie)
    origin = "http://127.0.0.1:#{@top.uri.port}"
    [{ cookie: }, { cookie:, origin: "http://evil.example" }, { origin: }, { cookie:, origin: }].map do |fields|
      headers = fields.to_h { |name, value| [name.to_s, value] }
      Net::HTTP.start(@top.uri.host, @top.uri.port) { |http| http.post("/live", "{}", headers) }.code
    end
  end

  def test_wrong_arguments_are_reported
    [%w[--port 1], %w[--web --port 70000], %w[--web --port x]].each do |arguments|
      output, status = Open3.capture2e(*ServedProcess::HEDDLE, "top", *arguments, chdir: @folder)

      assert_equal 2, status.exitstatus, output
      refute_match(/\.rb:\d+/, output)
    end
    taken = ["top", "--web", "--port", @top.uri.port.to_s]
    output, status = Open3.capture2e(*ServedProcess::HEDDLE, *taken, chdir: @folder)

    assert_equal 1, status.exitstatus, output
    refute_match(/\.rb:\d+/, output)
  end
end
