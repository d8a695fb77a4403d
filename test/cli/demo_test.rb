# frozen_string_literal: true

# test: long

require "test_helper"
require "heddle"
require "support/served_process"
require_relative "demo/browser"

# The demo site as a person meets it: `heddle demo`, and a real browser whose buttons are pressed.
class DemoTest < Minitest::Test
  TOTAL = "document.querySelector('#fifty').dataset.total"

  def setup
    chromium = need_program("chromium")
    driver = need_program("chromedriver")
    @served = ServedProcess.shared([*ServedProcess::HEDDLE, "demo", "--port", "0"])
    @browser = Browser.shared(chromium, driver)
    @browser.visit(@served.uri.to_s)
    await("fifty", TOTAL) # of the run that begins by itself
  end

  def teardown
    @browser&.start_over
  end

  def test_first_experiment_starts_by_itself
    assert_match(/All 50 requests were answered in \d\.\d\d s/, status_of("fifty"))
  end

  def test_fifty_requests_of_one_second_end_in_about_one_second
    @browser.click("#fifty [data-run]")

    await("fifty", TOTAL)
    total = @browser.run("return Number(document.querySelector('#fifty').dataset.total)")
    lines = "document.querySelectorAll('#fifty .timeline .run')"
    ends = @browser.run("return [...#{lines}].map((line) => line.getAttribute('x2'))")

    assert_equal "0", @browser.run("return document.querySelector('#fifty').dataset.failed"), status_of("fifty")
    assert_operator total, :>=, 1
    assert_operator total, :<, 10, "a pool of five would take ten seconds, one after the other fifty"
    assert_in_delta total, @browser.text("#fifty [data-measured]").to_f, 0.006
    assert_equal(50, ends.count { |x| x.to_f.positive? })
    assert_match(/All 50 requests were answered in \d\.\d\d s/, status_of("fifty"))
  end

  { "flock" => "flock", "ruby" => "Ruby" }.each do |way, name|
    define_method("test_a_request_that_blocks_in_#{way}_is_drawn_below_the_fifty") do
      @browser.run("document.querySelector('#fifty [name=way][value=#{way}]').click()")
      @browser.click("#fifty [data-run]")

      await("fifty", TOTAL)
      assert_match(/All 50 requests were answered .* One more request blocked the thread in #{name} for [\d.]+ s\./,
                   status_of("fifty"))
      assert_equal 51, @browser.run("return document.querySelectorAll('#fifty .timeline .run').length")
    end
  end

  def test_time_of_the_thread_pool_is_computed_and_labelled_so
    expected = { 3 => "17.0", 5 => "10.0", 16 => "4.0" }
    expected.each do |threads, seconds|
      @browser.run("document.querySelector('[name=pool][value=\"#{threads}\"]').click()")

      assert_equal seconds, @browser.text("#fifty [data-computed]")
    end
    assert_includes @browser.text("#fifty .figures .computed"), "computed, not measured"
  end

  def test_panel_works_by_keyboard
    @browser.run("document.querySelector('#fifty [data-run]').focus()")
    @browser.press(Browser::ENTER)

    await("fifty", "#{status("fifty")}.startsWith('All 50')")
    @browser.press(Browser::TAB, Browser::RIGHT)

    assert_equal "4.0", @browser.text("#fifty [data-computed]")
  end

  def test_crowd_is_counted_by_the_server_and_drawn
    @browser.run("document.querySelector('[name=crowd][value=\"16\"]').click()")
    @browser.click("#live [data-run]")
    await("live", "document.querySelector('#live').dataset.rate")
    live = ->(name) { @browser.run("return document.querySelector('#live').dataset[arguments[0]]", name) }

    assert_equal "0", live.call("failed"), status_of("live")
    assert_match(/16 clients got [\d,]+ responses in \d\.\d s: [\d,]+ a second .* None failed\./, status_of("live"))
    assert_operator live.call("most").to_i, :>=, live.call("rate").to_i * 0.8, "the server counts what the crowd counts"
    %w[rates latencies].each { |name| assert_operator coloured(name), :>, 50, "#{name} shows nothing" }
    assert_operator @browser.text("#live [data-now=answers]").delete(",").to_i, :>, 100
    assert_operator @browser.text("#live [data-now=connections]").to_i, :>=, 1
  end

  def test_page_fits_a_phone_and_logs_no_error
    @browser.devtools("Emulation.setDeviceMetricsOverride", width: 360, height: 740, deviceScaleFactor: 2, mobile: true)
    @browser.visit(@served.uri.to_s)

    assert_equal 360, @browser.run("return document.documentElement.scrollWidth")
    assert_empty @browser.console
  end

  private

  # Waits until a JavaScript expression is true, or says what the panel says.
  def await(panel, expression)
    assert(@browser.wait_for(expression, seconds: 60), "#{panel} says: #{status_of(panel)}")
  end

  def status(panel) = "document.querySelector('##{panel} [data-status]').innerText"

  def status_of(panel) = @browser.run("return #{status(panel)}")

  # How many pixels of a canvas have the colour of what was counted: it is more of one hue than rules and words are.
  def coloured(name)
    @browser.run(<<~JS, name)
      const canvas = document.querySelector(`#live [data-${arguments[0]}]`)
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
      let count = 0
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 0 && Math.abs(data[i] - data[i + 2]) > 60) count += 1
      }
      return count
    JS
  end
end
