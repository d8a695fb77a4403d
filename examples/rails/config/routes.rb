# frozen_string_literal: true

Rails.application.routes.draw do
  root "welcome#index"
  get "up" => "rails/health#show", as: :rails_health_check

  get "nap" => "naps#show"
  resources :echoes, only: :create

  get "count/live" => "counts#show"
  get "count/body" => "bodies#show"
end
