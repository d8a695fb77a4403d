# frozen_string_literal: true

# A body that has a connection until the client has read all of it.
class Download
  def each
    TightRecord.with_connection do |connection|
      connection.select_value("SELECT 1")
      100.times { yield "a" * 100_000 } # culprit: client holder
    end
  end
end
