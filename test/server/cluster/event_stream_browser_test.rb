# frozen_string_literal: true

require_relative "cluster_case"
require "cli/demo/browser"

# An EventSource of a real browser across reloads: the stream goes to the next worker, or the browser comes back with
# Last-Event-ID.
class ClusterEventStreamBrowserTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    require "heddle"

    PAGE = <<~HTML
      <!DOCTYPE html><title>numbers</title>
      <script>
        const found = { moves: [], stays: [] }, opened = { moves: 0, stays: 0 }, resets = []
        for (const name in found) {
          const source = new EventSource("/" + name)
          source.onopen = () => { opened[name]++ }
          source.onmessage = (event) => found[name].push(event.data)
          source.addEventListener("reset", () => resets.push(name))
        }
      </script>
    HTML

    run do |env|
      since = env["HTTP_LAST_EVENT_ID"]
      case env["PATH_INFO"]
      when "/publish" then [200, {}, [Heddle::PubSub.publish("all", env["QUERY_STRING"])]]
      when "/moves" then Heddle::EventStream.response("all", since:)
      when "/stays" then Heddle::EventStream.response("all", since:, handoff: false)
      when "/" then [200, { "content-type" => "text/html" }, [PAGE]]
      else [404, {}, []]
      end
    end
  RUBY

  RELOADS = 3
  NUMBERS = 300

  def setup
    super
    write("config.ru", APP)
  end

  def teardown
    @browser&.close
    super
  end

  def await(expression)
    return pass if @browser.wait_for(expression, seconds: PATIENCE)

    flunk [expression, @browser.run("return JSON.stringify([opened, resets, found])"), served.output].join("\n")
  end

  def publish(data) = Net::HTTP.get_response(served.at("/publish?#{data}"))

  # Publishes a hundred numbers a second until the block has returned, and some more.
  # @return [Integer] the last one
  def publish_during
    over = false
    publishing = Thread.new do
      number = 0
      until over && number >= NUMBERS
        publish(number += 1)
        sleep 0.01
      end
      number
    end
    yield
    over = true
    publishing.value
  end

  def test_an_event_source_misses_nothing_over_three_reloads
    serve("--pubsub-history", "1000")
    @browser = Browser.new(need_program("chromium"), need_program("chromedriver"))
    @browser.visit(served.at("/").to_s)
    wait_until { publish("start") && @browser.run("return found.moves.length > 0 && found.stays.length > 0") }
    last = publish_during do
      RELOADS.times do |number|
        signal("HUP")
        wait_for("reloaded: 2 workers serve the new code", number + 1)
        await("opened.stays > #{number + 1}")
      end
    end
    await("found.moves.at(-1) === '#{last}' && found.stays.at(-1) === '#{last}'")
    numbers = (1..last).map(&:to_s)

    assert_equal([numbers, numbers], %w[moves stays].map { |name| @browser.run("return found.#{name}") - ["start"] })
    assert_empty @browser.run("return resets")
  end
end
