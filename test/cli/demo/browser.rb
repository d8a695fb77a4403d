# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "tmpdir"

# A real Chromium without a window, driven through ChromeDriver by the WebDriver protocol
# (W3C, JSON over HTTP). It is ended, and its profile removed, by #close.
class Browser
  # What Chromium needs to run as root in a container, and to leave other hosts alone; and no smooth
  # scrolling, or a click misses what is still on its way.
  ARGUMENTS = %w[
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --force-prefers-reduced-motion
  ].freeze
  private_constant :ARGUMENTS

  # Keys, as WebDriver writes them.
  TAB = "\u{E004}"
  ENTER = "\u{E007}"
  RIGHT = "\u{E014}"

  # What ChromeDriver says of a script whose page was left while it ran. Its own limit of 30 s says the first, too.
  LEFT = /\Ascript timeout|document unloaded|aborted by navigation/
  private_constant :LEFT

  # A command that ChromeDriver refused.
  class Failed < StandardError; end

  # @return [Browser] one for all tests of this process that ask for the same, ended after the last test. A test ends
  #   with #start_over, so that the next one finds nothing of it.
  def self.shared(*arguments, **options)
    @shared ||= {}
    @shared[[arguments, options]] ||= new(*arguments, **options).tap { |one| Minitest.after_run { one.close } }
  end

  # @param chromium [String] the browser's path
  # @param driver [String] ChromeDriver's path
  # @param insecure [Boolean] whether certificates that nobody has signed will do
  # @param further [Array<String>] arguments of Chromium
  def initialize(chromium, driver, width: 1280, height: 900, insecure: false, further: [])
    @profile = Dir.mktmpdir("heddle-browser")
    start_driver(driver)
    arguments = [*ARGUMENTS, *further, "--window-size=#{width},#{height}", "--user-data-dir=#{@profile}"]
    arguments << "--ignore-certificate-errors" if insecure
    options = { binary: chromium, args: arguments }
    capabilities = { alwaysMatch: { browserName: "chrome", "goog:chromeOptions": options,
                                    "goog:loggingPrefs": { browser: "ALL" } } }
    @session = command("session", { capabilities: capabilities }).fetch("sessionId")
  rescue StandardError
    close
    raise
  end

  # Leaves one empty tab, without the cookies and the console of the others.
  def start_over
    tabs = get("window/handles")
    fresh = open_tab
    tabs.each do |tab|
      switch_to(tab)
      send_command(Net::HTTP::Delete.new("/session/#{@session}/window"))
    end
    switch_to(fresh)
    devtools("Network.clearBrowserCookies")
    console
  end

  # Loads a page and waits until it is there.
  def visit(url) = session("url", { url: url })

  # @return [String] a tab beside the others, which is the one that is driven from now on
  def open_tab = session("window/new", { type: "tab" }).fetch("handle").tap { |handle| switch_to(handle) }

  # @param tab [String]
  def switch_to(tab) = session("window", { handle: tab })

  # @return [String] the tab that is driven
  def tab = get("window")

  # @return [Object] what the JavaScript function body returns
  def run(script, *arguments) = session("execute/sync", { script: script, args: arguments })

  # Clicks as a person does: scrolled into view, and refused if something lies above it.
  def click(selector)
    element = session("element", { using: "css selector", value: selector }).values.first
    session("element/#{element}/click", {})
  end

  # Presses keys where the focus is.
  def press(*keys)
    strokes = keys.flat_map { |key| [{ type: "keyDown", value: key }, { type: "keyUp", value: key }] }
    session("actions", { actions: [{ type: "key", id: "keyboard", actions: strokes }] })
  end

  # @return [String] an element's text as it is shown
  def text(selector) = run("return document.querySelector(arguments[0]).innerText", selector)

  # Waits, in the page, until a JavaScript expression is true. A page that is left meanwhile, as for the answer to a
  # form, ends the script that waits in it; the wait continues in the next page.
  # @param seconds [Numeric] how long at most
  def wait_for(expression, seconds: 10)
    deadline = now + seconds
    begin
      session("execute/async", { script: wait_script(expression, deadline - now), args: [] })
    rescue Failed => e
      raise unless e.message.match?(LEFT) && now < deadline

      retry
    end
  end

  # A command of Chromium's own protocol (CDP), such as Emulation.setEmulatedMedia.
  def devtools(name, **parameters) = session("goog/cdp/execute", { cmd: name, params: parameters })

  # @return [Array<String>] what the page wrote to its console, errors of loading included
  def console = session("se/log", { type: "browser" }).map { |entry| "#{entry["level"]} #{entry["message"]}" }

  # @param whole [Boolean] the page to its end, not only what the window shows
  # @return [String] a PNG
  def screenshot(whole: true)
    devtools("Page.captureScreenshot", format: "png", captureBeyondViewport: whole).fetch("data").unpack1("m")
  end

  def close
    send_command(Net::HTTP::Delete.new("/session/#{@session}")) if @session
    Process.kill("TERM", @pid) if @pid
    Process.wait(@pid) if @pid
    @output&.close
    FileUtils.rm_rf(@profile)
    @session = @pid = nil
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def wait_script(expression, seconds)
    <<~JS
      const done = arguments[arguments.length - 1]
      const until = performance.now() + #{(seconds * 1000).to_i}
      const look = () => {
        if (#{expression}) done(true)
        else if (performance.now() > until) done(false)
        else requestAnimationFrame(look)
      }
      look()
    JS
  end

  # ChromeDriver takes a port that is free over IPv4, and ends where it is in use over IPv6.
  def start_driver(driver)
    said = []
    3.times do
      lines = run_driver(driver)
      said << lines
      port = lines.last&.slice(/started successfully on port (\d+)/, 1) or next Process.wait(@pid)
      return @driver_uri = URI("http://127.0.0.1:#{port}")
    end
    @pid = nil
    raise Failed, "ChromeDriver did not start:\n#{said.join}"
  end

  # @return [Array<String>] what it prints until it has started or ended
  def run_driver(driver)
    @output&.close
    @output, output = IO.pipe
    @pid = spawn(driver, "--port=0", out: output, err: output)
    output.close
    lines = []
    @output.each_line { |line| (lines << line) && line.include?("started successfully") && break }
    lines
  end

  def session(path, body) = command("session/#{@session}/#{path}", body)

  def get(path) = send_command(Net::HTTP::Get.new("/session/#{@session}/#{path}"))

  def command(path, body)
    request = Net::HTTP::Post.new("/#{path}", "content-type" => "application/json")
    request.body = JSON.generate(body)
    send_command(request)
  end

  def send_command(request)
    answer = Net::HTTP.start(@driver_uri.host, @driver_uri.port, nil, read_timeout: 120) { |http| http.request(request) }
    value = JSON.parse(answer.body)["value"]
    raise Failed, "#{value["error"]}: #{value["message"]}" if value.is_a?(Hash) && value["error"]

    value
  end
end
