# frozen_string_literal: true

require "excon"

proves_together("excon") { |url| Excon.get(url).body }
proves_cut { |url| Excon.get(url).body }
proves_abandoned { |url| Excon.get(url).body }
