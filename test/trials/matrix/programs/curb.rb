# frozen_string_literal: true

require "curb"

proves_together("curb") { |url| Curl.get(url).body_str }
