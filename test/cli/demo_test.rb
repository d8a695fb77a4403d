# frozen_string_literal: true

# test: long

require "test_helper"
require "heddle"
require "support/served_process"
require_relative "demo/browser"

# The demo site as a person meets it: `heddle demo`, and a real browser whose buttons are pressed.
class DemoTest < Minitest::Test
  def setup
    chromium = need_program("chromium")
    driver = need_program("chromedriver")
    @served = ServedProcess.shared([*ServedProcess::HEDDLE, "demo", "--port", "0"])
    @browser = Browser.new(chromium, driver)
    @browser.visit(@served.uri.to_s)
  end

  def teardown
    @browser&.close
  end

  def test_fifty_requests_of_a_second_end_in_about_a_second_on_the_page
    @browser.click("#fifty [data-run]")

    await("fifty", "document.querySelector('#fifty').dataset.total")
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

  def test_with_the_protections_on_fifty_requests_end_while_another_blocks
    @browser.click("#block [data-run]")

    await("block", "document.querySelector('#block').dataset.ended")
    told = %w[ended beside failed].map do |name|
      @browser.run("return document.querySelector('#block').dataset[arguments[0]]", name)
    end

    assert_equal %w[51 50 0], told, status_of("block")
    assert_match(/flock blocked for \d\.\d\d s, with the protections on: 50 of 50 others were answered meanwhile/,
                 status_of("block"))
    assert_equal "50", @browser.text("#block [data-beside]")
  end

  def test_with_the_protections_off_the_drawing_of_the_loop_shows_where_it_stood_still
    @browser.run("document.querySelector('#block [name=protect][value=off]').click()")
    @browser.click("#block [data-run]")

    await("block", "Number(document.querySelector('#block').dataset.seen) > 0")
    assert_match(/the last time for [\d.]+ \w+: \w+/, @browser.text("#block [data-last]"))
    await("block", "document.querySelector('#block').dataset.ended")
  end

  def test_the_pool_of_threads_is_computed_and_says_so
    expected = { 3 => "17.0", 5 => "10.0", 16 => "4.0" }
    expected.each do |threads, seconds|
      @browser.run("document.querySelector('[name=pool][value=\"#{threads}\"]').click()")

      assert_equal seconds, @browser.text("#fifty [data-computed]")
    end
    assert_includes @browser.text("#fifty .figures .computed"), "computed, not measured"
  end

  def test_lines_of_the_song_come_one_after_another_and_a_speed_goes_on_where_the_song_is
    @browser.run("document.querySelector('[name=pause][value=\"0.25\"]').click()")
    @browser.click("#bottles [data-run]")

    await("bottles", "#{rows} >= 5")
    cells = "document.querySelectorAll('[data-lines] td:nth-child(2)')"
    gaps = @browser.run("return [...#{cells}].map((cell) => parseFloat(cell.innerText))").compact

    gaps.each { |gap| assert_operator gap, :>, 0.1, "lines must not come together" }
    before = bottles_left
    @browser.run("document.querySelector('[name=pause][value=\"0.05\"]').click()")

    await("bottles", "#{taken} >= #{99 - before + 3}")
    @browser.click("#bottles [data-run]")

    await("bottles", "#{status("bottles")}.startsWith('Stopped after')")
  end

  def test_the_keyboard_is_enough
    @browser.run("document.querySelector('#fifty [data-run]').focus()")
    @browser.press(Browser::ENTER)

    await("fifty", "#{status("fifty")}.startsWith('All 50')")
    @browser.press(Browser::TAB, Browser::RIGHT)

    assert_equal "4.0", @browser.text("#fifty [data-computed]")
  end

  def test_a_crowd_is_counted_by_the_server_and_drawn
    @browser.run("document.querySelector('[name=crowd][value=\"16\"]').click()")
    @browser.click("#live [data-run]")
    await("live", "document.querySelector('#live').dataset.rate")
    live = ->(name) { @browser.run("return document.querySelector('#live').dataset[arguments[0]]", name) }

    assert_equal "0", live.call("failed"), status_of("live")
    assert_match(/16 clients got [\d,]+ answers in \d\.\d s: [\d,]+ a second .* None failed\./, status_of("live"))
    assert_operator live.call("most").to_i, :>=, live.call("rate").to_i * 0.8, "the server counts what the crowd counts"
    %w[rates latencies].each { |name| assert_operator coloured(name), :>, 50, "#{name} shows nothing" }
    assert_operator @browser.text("#live [data-now=answers]").delete(",").to_i, :>, 100
    assert_operator @browser.text("#live [data-now=connections]").to_i, :>=, 1
  end

  def join
    @browser.click("#together [data-run]")
    await("together", "document.querySelector('#together').dataset.joined")
  end

  def in_the_cloth(script)
    @browser.run("const cloth = document.querySelector('#together [data-weave]').contentDocument; return #{script}")
  end

  def test_what_one_tab_says_and_weaves_everybody_sees
    first = @browser.tab
    join
    second = @browser.open_tab
    @browser.visit(@served.uri.to_s)
    join
    @browser.run("document.querySelector('#together [name=text]').value = arguments[0]", "<b>hello</b>")
    @browser.click("#together form button")
    cloth = "document.querySelector('#together [data-weave]').contentDocument"
    await("together", "#{cloth}?.querySelector('[data-live-state=connected]')")
    in_the_cloth("cloth.querySelector('[data-live-place=\"7\"]').click()")
    [second, first].each do |tab|
      @browser.switch_to(tab)
      %w[socket events].each do |way|
        await("together", "document.querySelector('#together [data-#{way}]').innerText.startsWith('<b>hello</b>')")
      end
      await("together", "#{cloth}?.querySelector('[data-live-place=\"7\"].over')")
    end
    in_the_cloth("cloth.querySelector('[data-live-place=\"7\"]').click()")
    assert_empty(@browser.console.grep_v(/favicon/))
  end

  def test_the_server_tells_of_itself_and_goes_on_doing_so
    await("server", "Number(document.querySelector('#server').dataset.updates) >= 2")
    fact = ->(name) { @browser.text("[data-fact=#{name}]") }

    assert_equal Heddle::VERSION, fact.call("heddle")
    assert_match(/\A#{Regexp.escape(RUBY_VERSION)}/, fact.call("ruby"))
    assert_match(/\A(io_uring|epoll|kqueue|select)\z/, fact.call("selector"))
    assert_operator fact.call("fibers").to_i, :>=, 1
  end

  def test_over_tls_the_page_says_that_it_came_by_http2
    served = ServedProcess.new([*ServedProcess::HEDDLE, "demo", "-b", "tls://localhost:0"],
                               address: %r{(https://[^\s/]+:\d+)})
    browser = Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true)
    browser.visit(served.uri.to_s)
    browser.wait_for("document.querySelector('#server [data-fact=protocol]').innerText !== '–'", seconds: 60)

    assert_equal "HTTP/2 over TLS", browser.text("#server [data-fact=protocol]")
  ensure
    browser&.close
    served&.stop
  end

  def test_nothing_overflows_on_a_phone_and_nothing_is_logged_as_an_error
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

  def rows = "document.querySelectorAll('[data-lines] tr').length"

  def taken = "document.querySelectorAll('[data-wall] .taken').length"

  def bottles_left = 99 - @browser.run("return #{taken}")
end
