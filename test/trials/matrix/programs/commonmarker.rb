# frozen_string_literal: true

require "commonmarker"

text = ->(number) { Array.new(2_000) { |index| "- item #{index} of **#{number}**\n" }.join }
expected = Array.new(CLIENTS) { |number| Commonmarker.to_html(text.call(number)) }
got = clients { |number| Commonmarker.to_html(text.call(number)) }
proves("8 tasks render 2,000 lines, each its own", got == expected)
