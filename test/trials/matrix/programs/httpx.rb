# frozen_string_literal: true

require "httpx"

proves_together("httpx") { |url| HTTPX.get(url).raise_for_status }
proves_cut { |url| HTTPX.get(url).raise_for_status.to_s }
proves_abandoned { |url| HTTPX.get(url).raise_for_status.to_s }
