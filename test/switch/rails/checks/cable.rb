# frozen_string_literal: true

require_relative "../../../cli/demo/browser"

# Turbo Streams by Action Cable, in two tabs of Chromium.
module Switch
  class RailsApplication
    %i[development production].each do |environment|
      check "cable by two tabs in #{environment}", at: environment do
        browser = Browser.new(program("chromium"), program("chromedriver"))
        board = URI.join(served.uri, "/board").to_s
        tabs = Array.new(2) do
          tab = browser.open_tab
          browser.visit(board)
          expect browser.wait_for("document.querySelector('turbo-cable-stream-source[connected]')",
                                  seconds: Probe::TIMEOUT), "not connected"
          tab
        end
        expect post("/probes/say", "text" => "to both").code == "204", "not broadcast"
        tabs.map do |tab|
          browser.switch_to(tab)
          browser.wait_for("document.querySelector('#messages').innerText.includes('to both')",
                           seconds: Probe::TIMEOUT)
        end
      ensure
        browser&.close
      end
    end
  end
end
