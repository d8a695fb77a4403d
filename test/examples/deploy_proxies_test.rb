# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require_relative "support/proxies"
require_relative "../cli/demo/browser"

# The proxies of examples/deploy, with their files, in front of a real server: what curl and Chromium get through them.
class DeployProxiesTest < Minitest::Test
  include Proxies

  APPLICATION = File.expand_path("support/proxied.ru", __dir__)

  def serve(*arguments, **)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", *arguments, APPLICATION], folder: @folder, **)
  end

  # @param expected [Array<String>] the statuses of a response
  # @param scheme [String, nil] the one that the application sees; nil: that of the URL
  def assert_stands_in_front(urls, expected, scheme: nil)
    everything_passes(*urls)
    urls.each do |url|
      assert_equal expected, statuses("#{url}/")
      a_client_can_not_forge_its_address_or_that_of_the_site(url, scheme || URI(url).scheme)
    end
  end

  # -- nginx ----------------------------------------------------------------------------------------------------------

  # 1.22, of Debian 12, and 1.26, of Debian 13, take a 103 for the response.
  def test_nginx
    program = need_program("nginx")
    socket = path("http.sock")
    serve("--bind", "unix:#{socket}?mode=666", "--early-hints", "on", address: /serves .* on (\S+)$/)
    urls = run_nginx(program, socket)

    assert_stands_in_front(urls, ["200"])
  end

  # -- HAProxy --------------------------------------------------------------------------------------------------------

  def test_haproxy_which_passes_early_hints_on
    program = need_program("haproxy")
    serve("--bind", "127.0.0.1:0", "--early-hints", "always")
    urls = run_haproxy(program, @served.uri.port)

    assert_stands_in_front(urls, %w[103 200], scheme: "https")
  end

  # -- Caddy ----------------------------------------------------------------------------------------------------------

  def test_caddy_which_passes_early_hints_on
    program = need_program("caddy")
    socket = path("http.sock")
    serve("--bind", "unix:#{socket}?mode=666", "--early-hints", "always", address: /serves .* on (\S+)$/)
    urls = run_caddy(program, socket)

    assert_stands_in_front(urls, %w[103 200])
  end

  # -- Thruster -------------------------------------------------------------------------------------------------------

  def test_thruster_which_passes_early_hints_on
    spec = Gem.loaded_specs["thruster"] || Gem::Specification.find_all_by_name("thruster").first
    skip "needs the gem thruster: bin/setup" unless spec
    program = Dir[File.join(spec.full_gem_path, "exe", "*", "thrust")].first or skip "thruster has no program here"
    outer, inner = free_ports(2)
    run_proxy(program, *ServedProcess::HEDDLE, "serve", "--bind", "127.0.0.1", "--early-hints", "always", APPLICATION,
              ports: [outer, inner],
              environment: { "HTTP_PORT" => outer.to_s, "TARGET_PORT" => inner.to_s, "HEDDLE_PORT" => inner.to_s })
    url = "http://127.0.0.1:#{outer}"

    everything_passes(url)
    assert_equal %w[103 200], statuses("#{url}/")
  end

  # -- what is asked of each ------------------------------------------------------------------------------------------

  # @param secure [String, nil] of a listener with HTTP/2
  def everything_passes(plain, secure = nil)
    [plain, *secure].each do |url|
      connections_are_kept(url)
      an_upload_arrives(url)
      a_stream_comes_as_it_is_written(url)
    end
    a_browser_is_served(plain)
    a_browser_is_served(secure) if secure
  end

  # curl's words, not Ruby's.
  WRITTEN = "%{stderr}%{http_code} %{num_connects}\n" # rubocop:disable Style/FormatStringToken

  def connections_are_kept(url)
    written = curl("--write-out", WRITTEN, "--output", File::NULL,
                   *Array.new(3) { "#{url}/" }, *%w[--output /dev/null] * 2)

    assert_equal ["200 1", "200 0", "200 0"], written.lines(chomp: true)
  end

  def an_upload_arrives(url)
    content = "0123456789" * 300_000
    File.write(path("content"), content)

    assert_equal "3000000 #{Digest::SHA256.hexdigest(content)}",
                 curl("--data-binary", "@#{path("content")}", "#{url}/upload")
  end

  FORGED = { "Forwarded" => "for=8.8.8.8;host=evil.example;proto=ftp", "X-Forwarded-Host" => "evil.example",
             "X-Forwarded-Port" => "99", "X-Forwarded-Ssl" => "on", "X-Forwarded-Scheme" => "ws",
             "X-Forwarded-Proto" => "ws", "Client-IP" => "7.7.7.7", "Host" => "shop.example" }.freeze
  private_constant :FORGED

  # Rails answers 500 where Forwarded or Client-IP contradict X-Forwarded-For.
  def a_client_can_not_forge_its_address_or_that_of_the_site(url, scheme)
    fields = FORGED.flat_map { |name, value| ["--header", "#{name}: #{value}"] }

    assert_equal "127.0.0.1 #{scheme}://shop.example", curl(*fields, "#{url}/client")
  end

  def a_stream_comes_as_it_is_written(url)
    program = need_program("curl")
    IO.popen([program, "--silent", "--insecure", "--no-buffer", "--max-time", PATIENCE.to_s, "#{url}/stream"]) do |io|
      assert_equal "one\n", io.gets
      curl("#{url}/go")

      assert_equal "two\n", io.gets
    end
  end

  # A page with its style sheet, an upload, a stream and a WebSocket.
  def a_browser_is_served(url)
    @browser ||= Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true)
    @browser.visit("#{url}/")

    shown = @browser.wait_for("document.body.dataset.result", seconds: PATIENCE)

    assert shown, "#{url}: #{@browser.console}"
    result = JSON.parse(@browser.run("return document.body.dataset.result"))

    assert_equal ["1000000 #{Digest::SHA256.hexdigest("x" * 1_000_000)}", "one\ntwo\n", "hello"],
                 result.values_at("0", "1", "2"), "#{url}: #{result}"
    assert_empty @browser.console
  end
end
