# frozen_string_literal: true

require "sequel"

run(lambda do |env|
  other = Enumerator.new { |values| values << Sequel.current }.next
  text = env["PATH_INFO"] == "/enumerator" ? other.equal?(Sequel.current).to_s : Sequel.current.class.name
  [200, {}, [text]]
end)
