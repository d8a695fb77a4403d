# frozen_string_literal: true

# Takes the README's pictures anew: serves the demo, presses its first button in a headless Chromium,
# and writes demo-light.png and demo-dark.png beside this file.
#
#   ruby docs/images/take.rb

root = File.expand_path("../..", __dir__)
$LOAD_PATH.unshift(File.join(root, "test"))
require "support/served_process"
require "cli/demo/browser"

SIZE = { width: 1280, height: 1000, deviceScaleFactor: 1.5, mobile: false }.freeze

def program(name)
  ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }
     .find { |path| File.executable?(path) } || abort("take.rb needs #{name}")
end

served = ServedProcess.new([*ServedProcess::HEDDLE, "demo", "--port", "0"])
browser = Browser.new(program("chromium"), program("chromedriver"))
begin
  browser.devtools("Emulation.setDeviceMetricsOverride", **SIZE)
  browser.devtools("Emulation.setScrollbarsHidden", hidden: true)
  %w[light dark].each do |scheme|
    browser.devtools("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    browser.visit(served.uri.to_s)
    browser.wait_for("document.fonts.status === 'loaded'")
    browser.run("document.querySelector('#fifty [data-run]').click()")
    browser.wait_for("document.querySelector('#fifty').dataset.total", seconds: 20) || abort("no answer")
    File.binwrite(File.join(__dir__, "demo-#{scheme}.png"), browser.screenshot(whole: false))
  end
ensure
  browser.close
  served.stop
end
