# frozen_string_literal: true

# Takes the README's pictures anew: serves the demo, presses its buttons in a headless Chromium, and writes
# demo-light.png, demo-dark.png, live-light.png and live-dark.png beside this file. On a machine that does nothing
# else, please: what is seen was measured.
#
#   ruby docs/images/take.rb

root = File.expand_path("../..", __dir__)
$LOAD_PATH.unshift(File.join(root, "test"))
require "support/served_process"
require "cli/demo/browser"

SIZE = { width: 1280, height: 1000, deviceScaleFactor: 1.5, mobile: false }.freeze
# The crowds whose requests are in the picture of the live panel, in clients.
CROWDS = [1, 16, 64, 256].freeze

def program(name)
  ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }
     .find { |path| File.executable?(path) } || abort("take.rb needs #{name}")
end

def wait(browser, expression)
  browser.wait_for(expression, seconds: 20) || abort("nothing happens: #{expression}")
end

def press(browser, panel, done)
  browser.run("delete document.querySelector('##{panel}').dataset.#{done}; " \
              "document.querySelector('##{panel} [data-run]').click()")
  yield if block_given?
  wait(browser, "document.querySelector('##{panel}').dataset.#{done}")
end

# Every crowd in turn, and the fifty while the third is there.
def crowds(browser)
  browser.run("document.querySelector('#live').scrollIntoView()")
  CROWDS.each do |clients|
    browser.run("document.querySelector('[name=crowd][value=\"#{clients}\"]').click()")
    press(browser, "live", "rate") do
      sleep 2
      press(browser, "fifty", "total") if clients == CROWDS[2]
      yield if clients == CROWDS.last
    end
  end
end

served = ServedProcess.new([*ServedProcess::HEDDLE, "demo", "--port", "0"])
browser = Browser.new(program("chromium"), program("chromedriver"))
begin
  browser.devtools("Emulation.setDeviceMetricsOverride", **SIZE)
  browser.devtools("Emulation.setScrollbarsHidden", hidden: true)
  %w[light dark].each do |scheme|
    take = ->(name) { File.binwrite(File.join(__dir__, "#{name}-#{scheme}.png"), browser.screenshot(whole: false)) }
    browser.devtools("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    browser.visit(served.uri.to_s)
    wait(browser, "document.fonts.status === 'loaded'")
    press(browser, "fifty", "total")
    take.call("demo")
    crowds(browser) { take.call("live") }
  end
ensure
  browser.close
  served.stop
end
