# frozen_string_literal: true

require "nokogiri"

page = "<html>#{Array.new(2_000) { |index| "<p id='p#{index}'>#{index}</p>" }.join}</html>"
got = clients { |number| Nokogiri::HTML(page).at_css("#p#{number}").text }
proves("8 tasks parse 50 kB each and find their own", got == (0...CLIENTS).map(&:to_s))
