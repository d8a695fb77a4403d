# frozen_string_literal: true

require "test_helper"
require "cli/demo/browser"
require_relative "tls_helpers"

# Chromium over TLS: what its network log says of a page with many images.
class Http2BrowserTest < Minitest::Test
  include TLSHelpers

  IMAGES = 50
  PAGE = "<!doctype html><link rel=icon href=data:,>#{Array.new(IMAGES) { |i| "<img src=/#{i}.svg>" }.join}".freeze
  IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle cx="4" cy="4" r="4"/></svg>'
  APP = lambda do |env|
    if env["PATH_INFO"] == "/" then [200, { "content-type" => "text/html" }, [PAGE]]
    else
      [200, { "content-type" => "image/svg+xml" }, [IMAGE]]
    end
  end

  def test_a_page_and_its_images_come_over_one_connection
    log = File.join(@folder, "net.json")
    seen = nil
    serving_tls(APP, lint: false) { seen = look(log) }

    assert_equal({ "h2" => IMAGES + 1 }, seen.tally)
    events = events_of(log)

    assert_equal IMAGES + 1, events.fetch("HTTP2_SESSION_SEND_HEADERS").size
    assert_equal 1, events.fetch("HTTP2_SESSION_SEND_HEADERS").uniq.size, "of one session"
    refute_includes events, "HTTP2_SESSION_RECV_RST_STREAM"
  end

  # @return [Array<String>] by which protocol the page and each image came
  def look(log)
    browser = Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true,
                                                                                  further: ["--log-net-log=#{log}"])
    browser.visit("https://127.0.0.1:#{port}/")
    browser.run(<<~JS)
      return [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter((entry) => entry.name.startsWith("http")).map((entry) => entry.nextHopProtocol)
    JS
  ensure
    browser&.close
  end

  # @return [Hash{String => Array<Integer>}] the sources of the events of sessions with this server, by the type's name
  def events_of(path)
    text = File.read(path)
    log = JSON.parse(text.end_with?("}\n", "}") ? text : "#{text.strip.chomp(",")}]}")
    names = log.fetch("constants").fetch("logEventTypes").invert
    sources = log.fetch("events").group_by { |event| event.dig("source", "id") }
    ours = sources.select { |_, events| events.any? { |one| one.dig("params", "host").to_s.end_with?(":#{port}") } }
    ours.values.flatten.group_by { |event| names.fetch(event.fetch("type")) }
        .transform_values { |events| events.map { |event| event.dig("source", "id") } }
  end
end
