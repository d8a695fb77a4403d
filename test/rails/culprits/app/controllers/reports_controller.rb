# frozen_string_literal: true

# Requests that are slow, each for a reason that its own code does not show.
class ReportsController < ActionController::Base
  def show; end

  def quick = render(plain: "quick")

  def thumbnail
    Thumbnail.new.convert
    head :ok
  end

  def export
    Export.new(ENV.fetch("EXPORT_FILE")).write([params[:id]])
    head :ok
  end

  def cart = render(plain: Cart.total)

  def rate = render(plain: RateService.new(ENV.fetch("RATE_URL")).rate)

  def setting = render(plain: SETTINGS.value)

  # Ten short queries, each of which waits for the thread beside it. They differ: Rails remembers the last one's result.
  def warm
    CacheWarmer.new.warm(1.5)
    database = ActiveRecord::Base.connection
    render plain: Array.new(10) { |number| database.select_value("SELECT #{number} FROM pg_sleep(0.005)") }.size
  end

  def audited
    ActiveSupport::Notifications.instrument("audited.shop", user: params[:id])
    head :ok
  end
end
